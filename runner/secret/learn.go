package secret

import (
	"slices"
	"sync"
	"sync/atomic"
)

// MaxLearned bounds the values that a Redactor learns during a run; the oldest give way.
const MaxLearned = 32

// learned are the secrets that a run was given after its begin, such as access tokens.
type learned struct {
	// declared are the values that the Redactor was made of, and those of Keep.
	declared []Value
	mu       sync.Mutex
	values   []Value
	// newest is a Redactor of declared and values; nil: nothing was learned.
	newest atomic.Pointer[Redactor]
}

// NewLearner makes a Redactor of values that may Learn others; it is never nil.
func NewLearner(values ...Value) *Redactor {
	r := NewRedactor(values...)
	if r == nil {
		r = &Redactor{}
	}
	r.declared = slices.Clone(values)
	return r
}

// Learn adds a value: texts and pieces that are redacted from now on have *** in its
// place. Values shorter than MinLength are left out. r must be made by NewLearner.
func (r *Redactor) Learn(v Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.values, func(known Value) bool { return known.Reveal() == v.Reveal() }) {
		return
	}
	r.values = append(r.values, v)
	if more := len(r.values) - MaxLearned; more > 0 {
		r.values = slices.Delete(r.values, 0, more)
	}
	r.renew()
}

// Keep is Learn for a value that never gives way to others. The caller bounds how many
// there are.
func (r *Redactor) Keep(v Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.declared, func(known Value) bool { return known.Reveal() == v.Reveal() }) {
		return
	}
	r.declared = append(r.declared, v)
	r.renew()
}

// renew makes the newest Redactor, with the mutex held.
func (r *Redactor) renew() { r.newest.Store(NewRedactor(slices.Concat(r.declared, r.values)...)) }

// Values are those that are redacted by now.
func (r *Redactor) Values() []Value {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.declared, r.values)
}

// now is a Redactor of all that is known by now. It never changes.
func (r *Redactor) now() *Redactor {
	if r == nil {
		return nil
	}
	if newest := r.newest.Load(); newest != nil {
		return newest
	}
	return r
}
