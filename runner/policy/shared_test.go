package policy

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

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

func TestSharedKeepsTheLastFewThatNobodyHolds(t *testing.T) {
	var s Shared
	size := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.known)
	}
	compile := func(i int) *Compiled {
		p := parse(t, "default: deny")
		p.Name = fmt.Sprint("p", i)
		c, _ := s.Compile(p, testTools())
		return c
	}
	held := compile(0)
	first := weak.Make(compile(1))
	runtime.GC()
	if first.Value() == nil || compile(1) != first.Value() {
		t.Error("a policy that was used a moment ago was compiled again")
	}
	for i := range 2 * mostRecent {
		compile(2 + i)
		compile(1) // it stays the most recent but one
	}
	if first.Value() == nil {
		t.Error("a policy that is used again and again was forgotten")
	}
	for i := range mostRecent {
		compile(100 + i)
	}
	for range 1000 {
		if size() == mostRecent+1 {
			break
		}
		runtime.GC() // the cleanup runs some time after it
	}
	if n := size(); n != mostRecent+1 {
		t.Errorf("%d policies are known, want the last %d and the one that is held", n, mostRecent)
	}
	if first.Value() != nil {
		t.Error("a policy that nobody has used for long is kept")
	}
	if compile(0) != held {
		t.Error("a policy that is held was compiled again")
	}
	runtime.KeepAlive(held)
}

func BenchmarkSharedRunsInTurn(b *testing.B) {
	text := "rules: [{name: no, match: {tools: [bash]}, when: \"cmd.commands.exists(c, c.name == 'rm' && '-rf' in c.argv)\", action: deny}]"
	for name, s := range map[string]*Shared{"shared": {}, "alone": nil} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Compile(parse(b, text), testTools())
			}
		})
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
