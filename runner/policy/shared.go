package policy

import (
	"crypto/sha256"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"weak"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Shared lets many runs of one process compile a policy once, and hold it once.
// It forgets a policy that no run holds any more, except the last few. The zero
// value is ready, a nil one shares nothing; it may be used by many goroutines.
type Shared struct {
	mu    sync.Mutex
	known map[digest]*known
	// recent are the policies that were asked for last, the newest first. Runs that
	// follow one another find theirs here, though none of them holds it meanwhile.
	recent []*Compiled
}

// mostRecent is how many policies are kept that no run holds.
const mostRecent = 8

// digest is over all that a compilation depends on.
type digest [sha256.Size]byte

// known is a compilation that an engine may still use.
type known struct {
	once     sync.Once
	compiled weak.Pointer[Compiled]
	problems []Problem
}

// Compile does what the function Compile does, unless it has been done.
func (s *Shared) Compile(p *v1alpha1.Policy, tools []Tool) (*Compiled, []Problem) {
	if s == nil {
		return Compile(p, tools)
	}
	text, err := json.Marshal(struct {
		Name  string
		Spec  v1alpha1.PolicySpec
		Tools []Tool
	}{p.Name, p.Spec, tools})
	if err != nil { // a schema that is not JSON: the compiler reports it
		return Compile(p, tools)
	}
	key := digest(sha256.Sum256(text))
	for {
		k := s.find(key)
		var made *Compiled
		k.once.Do(func() {
			made, k.problems = Compile(p, tools)
			k.compiled = weak.Make(made)
			runtime.AddCleanup(made, func(k *known) { s.forget(key, k) }, k)
		})
		if made == nil {
			made = k.compiled.Value()
		}
		if made != nil {
			s.hold(made)
			return made, slices.Clone(k.problems)
		}
		s.forget(key, k) // the last run that held it has just let go
	}
}

func (s *Shared) find(key digest) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[key]
	if !ok {
		k = &known{}
		if s.known == nil {
			s.known = map[digest]*known{}
		}
		s.known[key] = k
	}
	return k
}

// hold puts a policy in front of the recent ones.
func (s *Shared) hold(c *Compiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.recent, c)
	if at < 0 {
		if len(s.recent) < mostRecent {
			s.recent = append(s.recent, nil)
		}
		at = len(s.recent) - 1 // the one that was asked for longest ago
	}
	copy(s.recent[1:at+1], s.recent[:at])
	s.recent[0] = c
}

// forget takes k out, unless another one has taken its place.
func (s *Shared) forget(key digest, k *known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == k {
		delete(s.known, key)
	}
}
