package runs

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// newID returns an id for an item of an inbox, which is read in the order of the ids. Two
// items of one writer may be made within a millisecond: the sub-millisecond part of the
// time is used where other ids have random bits.
func newID(kind string, now time.Time) string {
	var id ulid.ULID
	_, _ = rand.Read(id[:]) // never fails
	_ = id.SetTime(ulid.Timestamp(now))
	fraction := now.Nanosecond() % int(time.Millisecond)
	id[6], id[7], id[8] = byte(fraction>>16), byte(fraction>>8), byte(fraction)
	return kind + "-" + strings.ToLower(id.String())
}
