package policy

import (
	"runtime"
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestSharedCompilesOnceForAll(t *testing.T) {
	var s Shared
	text := "rules: [{name: no, match: {tools: [bash]}, when: \"cmd.network\", action: deny}, {name: never, when: \"false\", action: deny}]"
	all := make([]*Compiled, 20)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			var problems []Problem
			all[i], problems = s.Compile(parse(t, text), testTools())
			if len(problems) != 1 || !problems[0].Warning {
				t.Errorf("problems %v, want the same warning for everybody", problems)
			}
			problems[0].Path = "spoilt"
		})
	}
	group.Wait()
	for _, c := range all {
		if c != all[0] {
			t.Fatal("it was compiled more than once")
		}
	}
	e := NewEngine(all[:1], Context{Tools: testTools()})
	if d := decide(t, e, bash("curl example.com")); d.Action != message.Deny {
		t.Errorf("a shared policy decides %s", d.Action)
	}
	runtime.KeepAlive(all)
}

func TestSharedTellsPoliciesApart(t *testing.T) {
	var s Shared
	text := "rules: [{name: no, match: {tools: [bash]}, action: deny}]"
	first, _ := s.Compile(parse(t, text), testTools())
	named := parse(t, text)
	named.Name = "other"
	for name, c := range map[string]func() *Compiled{
		"another name":  func() *Compiled { c, _ := s.Compile(named, testTools()); return c },
		"another rule":  func() *Compiled { c, _ := s.Compile(parse(t, text+"\ndefault: allow"), testTools()); return c },
		"fewer tools":   func() *Compiled { c, _ := s.Compile(parse(t, text), testTools()[:1]); return c },
		"nothing known": func() *Compiled { c, _ := (*Shared)(nil).Compile(parse(t, text), testTools()); return c },
		"a broken tool": func() *Compiled {
			c, _ := s.Compile(parse(t, text), []Tool{{Name: "x", Schema: []byte("{")}})
			return c
		},
	} {
		if c() == first {
			t.Errorf("%s: got the same policy", name)
		}
	}
	runtime.KeepAlive(first)
}

func TestSharedForgetsWhatNobodyHolds(t *testing.T) {
	var s Shared
	size := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.known)
	}
	c, _ := s.Compile(parse(t, "default: deny"), testTools())
	runtime.GC()
	if again, _ := s.Compile(parse(t, "default: deny"), testTools()); again != c || size() != 1 {
		t.Errorf("a policy that is held was forgotten, %d are known", size())
	}
	runtime.KeepAlive(c)
	for range 1000 {
		if size() == 0 {
			break
		}
		runtime.GC() // the cleanup runs some time after it
	}
	if n := size(); n != 0 {
		t.Errorf("%d policies are kept that are not in use", n)
	}
}

func TestSharedCompilesAgainWhatIsJustGone(t *testing.T) {
	var s Shared
	first, _ := s.Compile(parse(t, "default: deny"), testTools())
	for key := range s.known {
		gone := &known{}
		gone.once.Do(func() {}) // compiled, and collected before its cleanup ran
		s.known[key] = gone
	}
	again, _ := s.Compile(parse(t, "default: deny"), testTools())
	if again == nil || again == first {
		t.Errorf("got %p, want another one than %p", again, first)
	}
	runtime.KeepAlive(first)
}
