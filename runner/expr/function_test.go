package expr

import (
	"strings"
	"testing"
)

func TestPathFunctions(t *testing.T) {
	env, err := NewEnv(Var{Name: "p", Type: String}, Var{Name: "w", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		"'/w/a'.under('/w')": true, "'/w'.under('/w')": true, "'/w/'.under('/w')": true, "'/w/a'.under('/w/')": true, "'/wx'.under('/w')": false, "'/'.under('/w')": false,
		"'/w/../etc'.under('/w')": false, "'/w/a/../b'.under('/w')": true, "'a'.under('/w')": false, "'/a'.under('')": false, "'a'.under('')": false, "''.under('/w')": false,
		"'/etc'.under('/')": true, "'?'.under('/')": false, "'~/x'.under('/')": false, "p.under(w)": true, "p.under(w + '/src')": true, "p.under(w + '/sr')": false,
		"glob(p, '**/a.go')": true, "glob(p, '*.go')": true, "glob(p, 'a.go')": false, "glob(p, '/w/*/?.go')": true, "glob('', '')": true, "glob('', '*')": true, "glob('x', '')": false,
		"glob('ab', 'a')": false, "glob('a*b', 'a?b')": true, "glob('ab', 'a**b**')": true, "[p].exists(x, x.under(w) && glob(x, '*.go'))": true,
	} {
		prog, err := env.Bool(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		got, err := prog.EvalBool(t.Context(), Input{Vars: map[string]any{"p": "/w/src/a.go", "w": "/w"}})
		if err != nil || (got == True) != want {
			t.Errorf("%s: got %v, %v; want %v", src, got, err, want)
		}
	}
	for _, src := range []string{"p.under(1)", "under(p, w)", "glob(p)", "glob(p, 1)", "p.under(w) == 'x'"} {
		if _, err := env.Bool(src); err == nil {
			t.Errorf("%s compiles", src)
		}
	}
}

func TestAGlobThatCostsTooMuchFails(t *testing.T) {
	env, err := NewEnv(Var{Name: "p", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := env.Bool("glob(p, p)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prog.EvalBool(t.Context(), Input{Vars: map[string]any{"p": strings.Repeat("a*", 4000)}, Large: true}); err == nil {
		t.Error("it was judged")
	}
}

func TestAnUnknownPathIsUnderNothingKnown(t *testing.T) {
	env, err := NewEnv(Var{Name: "p", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"p.under('/w')", "glob(p, '*')"} {
		prog, err := env.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := prog.EvalBool(t.Context(), Input{Vars: map[string]any{}, Unknown: NewUnknowns([]string{"p"})}); got != Unknown || err != nil {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}
}

func TestATextWasShownByACallThatHasRun(t *testing.T) {
	env, err := NewEnv(Var{Name: "calls", Type: List(Dyn)}, Var{Name: "text", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := env.Bool("calls.showed(text)")
	if err != nil {
		t.Fatal(err)
	}
	call := func(state, output string) any { return map[string]any{"state": state, "output": output} }
	for reason, c := range map[string]struct {
		calls []any
		text  string
		want  bool
	}{
		"it is part of an output":          {[]any{call("completed", "one"), call("completed", "two\nthree")}, "two", true},
		"it is in none":                    {[]any{call("completed", "one")}, "two", false},
		"a refusal repeats what was asked": {[]any{call("error", "two is denied")}, "two", false},
		"a command that failed has run":    {[]any{map[string]any{"state": "error", "output": "two", "exitCode": int64(1)}}, "two", true},
		"it is not joined from several":    {[]any{call("completed", "t"), call("completed", "wo")}, "two", false},
		"nothing is shown by nobody":       {[]any{call("completed", "one")}, "", false},
		"there is no call":                 {[]any{}, "two", false},
		"a call without an output":         {[]any{map[string]any{"state": "completed"}}, "two", false},
	} {
		got, err := prog.EvalBool(t.Context(), Input{Vars: map[string]any{"calls": c.calls, "text": c.text}})
		if err != nil || (got == True) != c.want {
			t.Errorf("%s: got %v, %v", reason, got, err)
		}
	}
	long := strings.Repeat("x", showedText/2+1)
	if _, err := prog.EvalBool(t.Context(), Input{Vars: map[string]any{"calls": []any{call("completed", long), call("completed", long)}, "text": "y"}, Large: true}); err == nil {
		t.Error("outputs above the bound were searched")
	}
	if _, err := env.Bool("calls.showed(1)"); err == nil {
		t.Error("a number compiles")
	}
}
