package expr

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const schemaText = `{"type":"object","required":["path"],"properties":{
 "path":{"type":"string","maxLength":200},"mode":{"type":"string","enum":["fast","slow"]},
 "count":{"type":"integer"},"ratio":{"type":"number"},"force":{"type":"boolean"},
 "tags":{"type":"array","items":{"type":"string"}},
 "kinds":{"type":"array","items":{"type":"string","enum":["a","b"]}},
 "nested":{"type":"object","properties":{"inner":{"type":"string"},"deep":{"$ref":"#/$defs/d"}}},
 "headers":{"type":"object","additionalProperties":{"type":"string"}},
 "either":{"oneOf":[{"type":"string"},{"type":"integer"}]},
 "max-size":{"type":"integer"},"in":{"type":"string"},
 "list":{"type":"array","items":{"type":"integer"}}},
 "$defs":{"d":{"type":"object","properties":{"x":{"type":"integer"},"again":{"$ref":"#/$defs/d"}}}}}`

func testEnv(t testing.TB) *Env {
	t.Helper()
	args, err := FromSchema("args", json.RawMessage(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	call := NewObject("Call", Field{Name: "args", Type: args}, Field{Name: "id", Type: String})
	env, err := NewEnv(Var{"call", call}, Var{"cmd", NewObject("Cmd", Field{Name: "commands", Type: List(Dyn)}, Field{Name: "dynamic", Type: Bool})},
		Var{"variables", NewObject("Variables", Field{Name: "dest", Type: String})}, Var{"n", Int})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestCompileRefusesMistakes(t *testing.T) {
	tests := map[string]struct{ reason, src, message, suggestion string }{
		"field":          {"a misspelt argument", "call.args.pth == 'x'", "call.args has no field pth", "did you mean path?"},
		"nested field":   {"types reach into nested objects", "call.args.nested.iner == 'x'", "call.args.nested has no field iner", "did you mean inner?"},
		"through a ref":  {"references are followed", "call.args.nested.deep.y == 1", "call.args.nested.deep has no field y", "it has again, x"},
		"has":            {"has() needs the field to exist in the type", "has(call.args.pth)", "call.args has no field pth", "did you mean path?"},
		"optional":       {"so does optional selection", "call.args.?pth.orValue('') == ''", "call.args has no field pth", "did you mean path?"},
		"variable":       {"a misspelt variable", "cal.id == ''", "there is no variable or function cal", "did you mean call?"},
		"no bool":        {"a condition must be bool", "call.args.path", "a condition must be of type bool, this is string", ""},
		"type":           {"text against a number", "call.args.path > 3", "> does not work on (string, int)", ""},
		"enum":           {"a literal that is no member", "call.args.mode == 'fsat'", `call.args.mode is never "fsat"`, "did you mean fast?"},
		"enum reversed":  {"the literal may stand first", "'quick' != call.args.mode", `call.args.mode is never "quick"`, "allowed are fast, slow"},
		"enum list":      {"each literal of a list is checked", "call.args.mode in ['fast', 'turbo']", `call.args.mode is never "turbo"`, "allowed are fast, slow"},
		"enum elements":  {"elements of a list", "'c' in call.args.kinds", `call.args.kinds is never "c"`, "allowed are a, b"},
		"enum loop":      {"a name that stands for an element", "call.args.kinds.exists(k, k == 'c')", `call.args.kinds is never "c"`, "allowed are a, b"},
		"enum loop list": {"a name in a list", "call.args.kinds.all(k, k in ['a', 'c'])", `call.args.kinds is never "c"`, "allowed are a, b"},
		"enum index":     {"an element by its number", "call.args.kinds[0] != 'c'", `call.args.kinds is never "c"`, "allowed are a, b"},
		"syntax":         {"a syntax error", "call.args.path ==", "syntax error", ""},
		"not a function": {"a function that does not exist", "flow('x')", "there is no variable or function flow", ""},
		"cost":           {"nested loops over unbounded lists", "call.args.list.all(a, call.args.list.all(b, call.args.list.all(c, a+b+c > 0)))", "the expression may cost", "nest fewer loops"},
		"object":         {"objects are not made in rules", "Call{id: 'x'}.id == 'x'", "", ""},
	}
	env := testEnv(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := env.Bool(tc.src)
			if name == "object" {
				if err == nil {
					if _, err = p.EvalBool(t.Context(), Input{Vars: map[string]any{}}); err == nil {
						t.Fatal("an object was made in an expression")
					}
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: got %v, want an *Error", tc.reason, err)
			}
			if !strings.Contains(e.Message, tc.message) || !strings.HasPrefix(e.Suggestion, tc.suggestion) {
				t.Errorf("%s: got %q / %q, want %q / %q", tc.reason, e.Message, e.Suggestion, tc.message, tc.suggestion)
			}
			if e.Line != 1 || e.Col < 1 {
				t.Errorf("position %d:%d", e.Line, e.Col)
			}
		})
	}
}

func TestEvaluateDecodedArguments(t *testing.T) {
	raw := `{"path":"a/b","mode":"fast","count":3.0,"ratio":5,"force":true,"tags":["x","y"],"headers":{"h":"v"},
		"either":7,"max-size":10,"in":"here","list":[1,2],"extra":1}`
	tests := map[string]bool{
		"call.args.path.startsWith('a/')":                        true,
		"call.args.count == 3":                                   true,
		"call.args.ratio == 5.0":                                 true,
		"call.args.ratio > 4":                                    true,
		"has(call.args.nested)":                                  false,
		"call.args.?nested.?inner.orValue('') == ''":             true,
		"'x' in call.args.tags":                                  true,
		"call.args.headers['h'] == 'v'":                          true,
		"call.args.headers.h == 'v'":                             true,
		"call.args.either == 7":                                  true,
		"call.args.max__dash__size == 10":                        true,
		"call.args.__in__ == 'here'":                             true,
		"call.args.list.exists(x, x == 2)":                       true,
		"call.args.tags.join(',') == 'x,y'":                      true,
		"sets.contains(call.args.tags, ['y'])":                   true,
		"call.args.tags.all(i, t, t != '' && i < 5)":             true,
		"call.args.mode in ['fast']":                             true,
		"call.args.path.matches('^a/.$')":                        true,
		"has(call.args.nested) && call.args.nested.inner == 'x'": false,
	}
	env := testEnv(t)
	typ, _ := env.vars[0].Type.Field("args")
	for src, want := range tests {
		t.Run(src, func(t *testing.T) {
			args, err := typ.Decode(json.RawMessage(raw))
			if err != nil {
				t.Fatal(err)
			}
			p, err := env.Bool(src)
			if err != nil {
				t.Fatal(err)
			}
			for _, large := range []bool{false, true} {
				got, err := p.EvalBool(t.Context(), Input{Vars: map[string]any{"call": map[string]any{"args": args}}, Large: large})
				if err != nil || (got == True) != want {
					t.Errorf("large=%v: got %v, %v, want %v", large, got, err, want)
				}
			}
		})
	}
}

func TestUnknownIsNeitherTrueNorFalse(t *testing.T) {
	env := testEnv(t)
	unknown := NewUnknowns([]string{"cmd", "commands"})
	tests := map[string]struct {
		src  string
		want Truth
	}{
		"read":        {"cmd.commands.exists(c, c == 'rm')", Unknown},
		"negated":     {"!cmd.commands.exists(c, c == 'rm')", Unknown},
		"other field": {"cmd.dynamic", True},
		"or true":     {"cmd.dynamic || size(cmd.commands) > 1", True},
		"and false":   {"n == 2 && size(cmd.commands) > 1", False},
		"not read":    {"n == 1", True},
		"whole":       {"cmd == cmd", Unknown},
		"variable":    {"variables.dest == 'x'", Unknown},
	}
	dest, err := env.String("string(size(cmd.commands))")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := env.Bool(tc.src)
			if err != nil {
				t.Fatal(err)
			}
			in := Input{Vars: map[string]any{"n": 1, "cmd": map[string]any{"dynamic": true}}, Unknown: unknown}
			in.Vars["variables"] = NewLazy(func(string) (any, error) { return dest.EvalRaw(t.Context(), in) })
			got, err := p.EvalBool(t.Context(), in)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestErrorsAreNoTruth(t *testing.T) {
	env := testEnv(t)
	big := make([]any, 1_000_000)
	for i := range big {
		big[i] = int64(1)
	}
	vars := map[string]any{"n": int64(0), "call": map[string]any{"args": map[string]any{"list": big}}}
	for name, src := range map[string]string{
		"million elements": "call.args.list.all(x, x > 0)",
		"divide by zero":   "1 / n == 1",
		"overflow":         "9223372036854775807 + n + 1 > 0",
		"missing key":      "call.args.path == ''",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := env.Bool(src)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.EvalBool(t.Context(), Input{Vars: vars, Large: true}); err == nil {
				t.Errorf("got %v without an error", got)
			}
		})
	}
}

func TestVariablesAreComputedOnce(t *testing.T) {
	env := testEnv(t)
	p, err := env.Bool("variables.dest == 'a' && variables.dest != 'b'")
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	vars := map[string]any{"variables": NewLazy(func(name string) (any, error) { times++; return "a", nil })}
	if got, err := p.EvalBool(t.Context(), Input{Vars: vars}); err != nil || got != True || times != 1 {
		t.Errorf("got %v, %v after %d computations", got, err, times)
	}
	vars["variables"] = NewLazy(func(name string) (any, error) { return nil, errors.New("no") })
	if _, err := p.EvalBool(t.Context(), Input{Vars: vars}); err == nil || !strings.Contains(err.Error(), "dest: no") {
		t.Errorf("got %v, want the variable's own error", err)
	}
}

func TestConstant(t *testing.T) {
	env := testEnv(t)
	for src, want := range map[string][2]bool{
		"false && n == 1": {false, true}, "true": {true, true}, "n == 1": {false, false}, "n == 1 || true": {true, true},
		"call.args.tags.exists(t, false)": {false, false}, "[1].exists(i, i == 1 || n == 1)": {true, true}, "[].exists(i, i == n)": {false, true},
		"optional.of(false).orValue(n == 1)": {false, true}, "optional.of(n).orValue(1) == 1": {false, false},
		"true ? n == 1 : true": {false, false}, "n == 1 ? true : true": {false, false}, "!(n == 1 || true)": {false, true},
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Fatal(src, err)
		}
		if v, c := p.Constant(); v != want[0] || c != want[1] {
			t.Errorf("%s: got %v, %v", src, v, c)
		}
	}
}

func TestGuards(t *testing.T) {
	for src, want := range map[string]bool{
		"has(call.args.x) && call.args.x == 1":                true,
		"call.args.x == 1 && has(call.args.x)":                true,
		"!has(call.args.x) || call.args.x == 1":               true,
		"has(call.args.x) ? call.args.x == 1 : false":         true,
		"!(has(call.args.x) && call.args.x.y == 1)":           true,
		"call.args.?x.orValue(1) == 1":                        true,
		"call.args.x == 1":                                    false,
		"has(call.args.x) || call.args.x == 1":                false,
		"has(call.args.x) ? true : call.args.x":               false,
		"has(call.args.x.y)":                                  false,
		"[1].exists(i, call.args.x == i)":                     false,
		"has(call.args.x) && [1].exists(i, call.args.x == i)": true,
	} {
		s, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Guarded("x", "call", "args"); got != want {
			t.Errorf("%s: got %v, want %v", src, got, want)
		}
		if diff := cmp.Diff([]string{"x"}, s.Fields("call", "args")); diff != "" {
			t.Errorf("%s: fields (-want +got)\n%s", src, diff)
		}
		if !s.Reads("call", "args") || s.Reads("cmd") {
			t.Errorf("%s: reads", src)
		}
	}
}

func TestEvalReturnsGoValues(t *testing.T) {
	env := testEnv(t)
	p, err := env.Any("{'a': [1, 2.5, 'x', true, null], 'b': n}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Eval(t.Context(), map[string]any{"n": 4})
	want := map[string]any{"a": []any{int64(1), 2.5, "x", true, nil}, "b": int64(4)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestSchemaLimits(t *testing.T) {
	for name, raw := range map[string]string{"no json": `{`, "not a schema": `[]`, "properties": `{"properties":3}`, "large": `{"a":"` + strings.Repeat("x", schemaLimit) + `"}`} {
		if _, err := FromSchema("args", json.RawMessage(raw)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	loop, err := FromSchema("args", json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`))
	if err != nil || loop.Name() != "dyn" {
		t.Errorf("a reference to itself: got %s, %v", loop.Name(), err)
	}
}

func BenchmarkColdEnvAndTenRules(b *testing.B) {
	for b.Loop() {
		env := testEnv(b)
		for range 10 {
			if _, err := env.Bool("call.args.path.startsWith('/etc/') && !has(call.args.nested)"); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	p, err := testEnv(b).Bool("call.args.path.startsWith('/etc/') && !has(call.args.nested) || call.args.path.matches('^a.*z$')")
	if err != nil {
		b.Fatal(err)
	}
	in := Input{Vars: map[string]any{"call": map[string]any{"args": map[string]any{"path": "abc"}}}}
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = p.EvalBool(context.Background(), in)
		}
	})
	in.Large = true
	b.Run("counted", func(b *testing.B) {
		for b.Loop() {
			_, _ = p.EvalBool(context.Background(), in)
		}
	})
}

func TestOneSourceServesManyEnvironments(t *testing.T) {
	of := func(typ Type) *Env {
		env, err := NewEnv(Var{Name: "args", Type: NewObject("Args", Field{Name: "x", Type: typ})}, Var{Name: "sets", Type: Int})
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	// sets.contains is rewritten inside the tree by a check, sets is not.
	s, err := Parse("sets.contains([args.x], [args.x]) && sets == 1 && args.x == 'a'")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bool(of(Int)); err == nil || !strings.Contains(err.Error(), "==") {
		t.Errorf("compiled against an int: %v, want an error about ==", err)
	}
	for range 2 {
		p, err := s.Bool(of(String))
		if err != nil {
			t.Fatal(err)
		}
		for x, want := range map[string]Truth{"a": True, "b": False} {
			vars := map[string]any{"args": map[string]any{"x": x}, "sets": 1}
			if got, err := p.EvalBool(t.Context(), Input{Vars: vars}); err != nil || got != want {
				t.Errorf("%s: got %v, %v, want %v", x, got, err, want)
			}
		}
	}
	if !s.Reads("args", "x") {
		t.Error("after the checks the source does not read args.x any more")
	}
}

func TestSecretSeesCredentials(t *testing.T) {
	env, err := NewEnv(Var{Name: "text", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	p, err := env.Bool("secret(text)")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Truth{"AKIA" + "IOSFODNN7EXAMPLE": True, "nothing": False} {
		if got, err := p.EvalBool(t.Context(), Input{Vars: map[string]any{"text": text}}); got != want || err != nil {
			t.Errorf("secret(%q) is %v (%v), want %v", text, got, err, want)
		}
	}
	if _, err := p.EvalBool(t.Context(), Input{Vars: map[string]any{"text": strings.Repeat("x", secretText+1)}, Large: true}); err == nil {
		t.Error("a text that is too long to look at is no error")
	}
	if _, err := env.Bool("secret(1)"); err == nil {
		t.Error("secret(1) compiles")
	}
}
