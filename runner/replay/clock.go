package replay

import "time"

// leap is longer than the loop gathers pieces of an answer before it tells them.
const leap = time.Minute

// clock is the time of the recording. While an answer is played it decides which
// pieces the loop tells at once and which it gathers.
type clock struct {
	last time.Time
	// ahead grows with each piece that is to be told at once; still is set while
	// pieces are to be gathered.
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
		return time.Time{}.Add(leap) // before anything was told
	}
	return c.last.Add(c.ahead)
}
