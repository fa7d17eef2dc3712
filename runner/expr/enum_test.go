package expr

import "testing"

func TestALoopOverOtherThingsIsNoEnum(t *testing.T) {
	env, err := NewEnv(Var{Name: "kinds", Type: List(Enum("a", "b"))}, Var{Name: "names", Type: List(String)}, Var{Name: "modes", Type: Map(Enum("a", "b"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"kinds.exists(k, k == 'a') && names.exists(k, k == 'c')", "modes.exists(k, k == 'c')", "names.exists(k, k == 'c')", "kinds.map(k, k + 'x').exists(k, k == 'ax')",
	} {
		if _, err := env.Bool(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
