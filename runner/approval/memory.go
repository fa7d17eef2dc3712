package approval

import (
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/message"
)

// Memory is what was approved for always in a run. It is asked only about calls
// that would be asked about: it lifts no deny.
type Memory struct {
	mu     sync.Mutex
	grants []message.Grant
}

// NewMemory returns a memory that holds what was remembered before.
func NewMemory(grants []message.Grant) *Memory { return &Memory{grants: slices.Clone(grants)} }

// Covers reports whether all grants that the call would yield have been given already. A
// call that cannot be undone, or that may have happened already, is never covered.
func (m *Memory) Covers(q message.Question) bool {
	if m == nil || !rememberable(q) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(q.Decision.Always, func(g message.Grant) bool {
		return !slices.ContainsFunc(m.grants, func(have message.Grant) bool { return covers(have, g) })
	})
}

// rememberable reports whether a question can be answered with scope Always.
func rememberable(q message.Question) bool {
	switch q.Decision.Risk {
	case "R0", "R1", "R2":
		return !q.Unknown && len(q.Decision.Always) > 0
	}
	return false
}

// add remembers.
func (m *Memory) add(grants []message.Grant) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range grants {
		if !slices.Contains(m.grants, g) {
			m.grants = append(m.grants, g)
		}
	}
}
