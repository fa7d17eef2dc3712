package agenttest

import (
	"sync"

	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/expect"
)

// expectations compiles what is expected of each agent, once for all cases.
type expectations struct {
	catalog *admission.Catalog
	mu      sync.Mutex
	sets    map[string]*expect.Set
}

func newExpectations(c *admission.Catalog) *expectations {
	return &expectations{catalog: c, sets: map[string]*expect.Set{}}
}

// of returns the set of an agent.
func (e *expectations) of(agent string) *expect.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sets[agent] == nil {
		e.sets[agent] = e.catalog.Expectations(agent)
	}
	return e.sets[agent]
}
