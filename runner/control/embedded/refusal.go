package embedded

import "time"

const (
	// refusalsKept is how many failed requests of one identity the audit log
	// records within refusalsWithin; of the others it records the number.
	refusalsKept   = 256
	refusalsWithin = time.Hour
)

// refusals are the requests of an identity that came to nothing, lately. Who may
// do nothing at all can still ask for it without an end, and so push out of the
// audit log what others did.
type refusals struct {
	since time.Time
	told  int
	// Left out since then, and the latest of them.
	untold int64
	last   AuditRecord
}

// count says which records are to be written for another one: itself while there
// are few, and that of a time that is over with how many it stands for.
func (r *refusals) count(one AuditRecord) (write []AuditRecord) {
	// A clock that was set back starts a new period as well.
	if age := one.Time.Sub(r.since); age < 0 || age >= refusalsWithin {
		write = r.rest()
		*r = refusals{since: one.Time}
	}
	if r.told < refusalsKept {
		r.told++
		return append(write, one)
	}
	r.untold++
	r.last = one
	return write
}

// rest is the record for those that were left out; none when there are none.
func (r *refusals) rest() []AuditRecord {
	if r.untold == 0 {
		return nil
	}
	last := r.last
	last.LeftOut = r.untold - 1
	return []AuditRecord{last}
}
