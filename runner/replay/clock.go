package replay

import "time"

// leap is longer than the time for which the loop gathers pieces of an answer before it
// emits them.
const leap = time.Minute

// clock is the time of the recording. While an answer is played it determines which pieces
// the loop emits at once and which it gathers.
type clock struct {
	last time.Time
	// ahead grows with each piece that is to be emitted at once; still is set while pieces
	// are to be gathered.
	ahead time.Duration
	still bool
}

func (c *clock) at(t time.Time) {
	if t.After(c.last) {
		c.last = t
	}
}

func (c *clock) now() time.Time {
	if c.still {
		return time.Time{}.Add(leap) // before the first event
	}
	return c.last.Add(c.ahead)
}
