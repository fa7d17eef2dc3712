package execution

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewIDs returns a source of ids that sort by time.
func NewIDs(now func() time.Time) func(kind string) string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(rand.Reader, 0)
	entropy.Reader = rand.Reader // instead of a buffer that would be kept as long as the run
	return func(kind string) string {
		mu.Lock()
		defer mu.Unlock()
		id, err := ulid.New(ulid.Timestamp(now()), entropy)
		if err != nil { // more than 2^80 ids in one millisecond
			id = ulid.Make()
		}
		return kind + "-" + strings.ToLower(id.String())
	}
}

// maxAgentPart bounds the readable part of a run's id.
const maxAgentPart = 40

// RunID returns an id for a run of an agent.
func RunID(agent string, ids func(string) string) string {
	return ids(strings.TrimRight(agent[:min(len(agent), maxAgentPart)], ".-"))
}
