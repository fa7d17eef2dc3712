package expr

import "testing"

func TestANameThatWasNotCountedHasZero(t *testing.T) {
	env, err := NewEnv(Var{"session", NewObject("Session", Field{Name: "calls", Type: Counts()})})
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]any{"session": map[string]any{"calls": CountsOf(map[string]int{"read": 2})}}
	for _, src := range []string{
		"session.calls.bash == 0", "session.calls['bash'] == 0", "session.calls.read == 2", "session.calls['read'] + session.calls['bash'] == 2",
		"!('bash' in session.calls)", "'read' in session.calls", "size(session.calls) == 1", "session.calls.exists(name, session.calls[name] > 1)",
		"session.calls.?bash.orValue(7) == 0", "session.calls == {'read': 2}",
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		for _, in := range []Input{{Vars: vars}, {Vars: vars, Large: true}, {Vars: vars, Unknown: NewUnknowns([]string{"other"})}} {
			if v, err := p.EvalBool(t.Context(), in); err != nil || v != True {
				t.Errorf("%s: %v, %v", src, v, err)
			}
		}
		if a := p.Absences(); len(a) > 0 {
			t.Errorf("%s: reported as possibly absent: %v", src, a)
		}
	}
}
