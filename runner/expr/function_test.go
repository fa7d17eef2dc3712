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
