package runs

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// newID returns an id for what is left in an inbox. It is read in the order of the
// ids, and one who leaves two things in a row does so within a millisecond: what is
// left of the time stands where other ids have chance.
func newID(kind string, now time.Time) string {
	var id ulid.ULID
	_, _ = rand.Read(id[:]) // never fails
	_ = id.SetTime(ulid.Timestamp(now))
	fraction := now.Nanosecond() % int(time.Millisecond)
	id[6], id[7], id[8] = byte(fraction>>16), byte(fraction>>8), byte(fraction)
	return kind + "-" + strings.ToLower(id.String())
}
