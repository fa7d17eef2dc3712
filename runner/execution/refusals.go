package execution

import (
	"fmt"
	"sync"
)

// refusals reports the answers, or the messages, that a run does not accept. The inbox is
// a folder: what is written into it must not fill the journal.
type refusals struct {
	one, many string
	warn      func(text string)

	mu       sync.Mutex
	reported map[string]bool
}

// refusalLimit bounds the warnings about single files.
const refusalLimit = 16

// add reports each once, and that there are too many once.
func (r *refusals) add(name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n := len(r.reported); {
	case r.reported[name] || n > refusalLimit:
		return
	case n == refusalLimit:
		r.warn(fmt.Sprintf("more than %d %s in the run's inbox are not taken; no more is said of them", refusalLimit, r.many))
	default:
		r.warn(refused(r.one, name, why.Error()))
	}
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[name] = true
}

// refused is the warning about what is not accepted.
func refused(one, name, why string) string {
	return one + " in the run's inbox is not taken (" + name + "): " + why
}
