package embedded

import "time"

const (
	// refusalsKept is how many failed requests of one identity the audit log
	// records within refusalsWithin; of the others it records the number.
	refusalsKept   = 256
	refusalsWithin = time.Hour
)

// refusals are the recent failed requests of an identity. An identity without
// permissions can still send requests without an end, and so push the records
// of others out of the audit log.
type refusals struct {
	since time.Time
	told  int
	// Left out since then, and the latest of them.
	untold int64
	last   AuditRecord
}

// count returns which records to write for a new one: the record itself while
// there are few. When a period is over, also its last record with the number of
// those left out.
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

// rest is the record for those that were left out; nothing if there are none.
func (r *refusals) rest() []AuditRecord {
	if r.untold == 0 {
		return nil
	}
	last := r.last
	last.LeftOut = r.untold - 1
	return []AuditRecord{last}
}
