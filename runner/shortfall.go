package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// shortfalls tell of limits that are declared and not enforced, each once. A
// sandbox may stand before there is a journal: what is known until then is told
// when it is opened.
type shortfalls struct {
	mu    sync.Mutex
	tell  func(text string)
	known []string
}

func (s *shortfalls) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.known, text) {
		return
	}
	s.known = append(s.known, text)
	if s.tell != nil {
		s.tell(text)
	}
}

func (s *shortfalls) open(tell func(text string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell = tell
	for _, text := range s.known {
		tell(text)
	}
}

// lacking is told of a sandbox in which some limits are not enforced.
func (s *session) lacking(p *spec.Profile, limits []string) {
	s.shortfalls.add("this host does not enforce all limits of " + strings.Join(s.sharing(p), ", ") + ": " + strings.Join(limits, "; ") +
		" (see agentctl doctor)")
}

// exceeded is told that processes were killed for the memory that they took together.
func (s *session) exceeded(p *spec.Profile, taken int64) {
	s.shortfalls.add(fmt.Sprintf("the processes of %s took %d MiB of memory together, limits.memory is %d MiB: those of the call that took most were killed",
		strings.Join(s.sharing(p), ", "), taken>>20, p.Limits.Memory>>20))
}

// sharing are the tools that are held alike.
func (s *session) sharing(p *spec.Profile) (tools []string) {
	for name, held := range s.pool.Profiles {
		if held.Network == p.Network && held.Access == p.Access && held.Group == p.Group && held.Limits == p.Limits && slices.Equal(held.Allow, p.Allow) {
			tools = append(tools, name)
		}
	}
	slices.Sort(tools)
	return tools
}
