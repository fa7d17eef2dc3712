package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestSchemaTypes(t *testing.T) {
	tests := map[string]struct{ schema, want string }{
		"string":          {`{"type":"string"}`, "string"},
		"integer":         {`{"type":"integer"}`, "int"},
		"number":          {`{"type":"number"}`, "double"},
		"boolean":         {`{"type":"boolean"}`, "bool"},
		"array":           {`{"type":"array","items":{"type":"integer"}}`, "list(int)"},
		"tuple":           {`{"type":"array","prefixItems":[{"type":"integer"}]}`, "list(dyn)"},
		"map":             {`{"type":"object","additionalProperties":{"type":"number"}}`, "map(string, double)"},
		"open object":     {`{"type":"object"}`, "map(string, dyn)"},
		"object":          {`{"properties":{"a":{"type":"string"}}}`, "t"},
		"one of":          {`{"oneOf":[{"type":"string"}]}`, "dyn"},
		"any of":          {`{"type":"object","anyOf":[{}]}`, "dyn"},
		"nullable":        {`{"type":["string","null"]}`, "dyn"},
		"list of one":     {`{"type":["string"]}`, "string"},
		"true":            {`true`, "dyn"},
		"untyped":         {`{}`, "dyn"},
		"foreign ref":     {`{"$ref":"https://example.com/x"}`, "dyn"},
		"ref":             {`{"$ref":"#/definitions/x","definitions":{"x":{"type":"boolean"}}}`, "bool"},
		"type of no sort": {`{"type":"strange"}`, "dyn"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FromSchema("t", json.RawMessage(tc.schema))
			if err != nil || got.Name() != tc.want {
				t.Errorf("got %s, %v, want %s", got.Name(), err, tc.want)
			}
		})
	}
}

func TestInferParams(t *testing.T) {
	typ, err := Infer("P", json.RawMessage(`{"hosts":["a","b"],"n":1,"f":1.5,"b":true,"o":{"x":[]},"mixed":[1,"a"],"nil":null,"lists":[[1]]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"hosts": "list(string)", "n": "int", "f": "double", "b": "bool", "o": "P.o", "mixed": "list(dyn)", "nil": "dyn", "lists": "list(dyn)"}
	for f, name := range want {
		if got, ok := typ.Field(f); !ok || got.Name() != name {
			t.Errorf("%s: got %s, want %s", f, got.Name(), name)
		}
	}
	for _, bad := range []string{"", "{", "{} {}"} {
		if _, err := Infer("P", json.RawMessage(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestIdentifier(t *testing.T) {
	for name, want := range map[string]string{"path": "path", "max-size": "max__dash__size", "a.b/c": "a__dot__b__slash__c", "in": "__in__", "a__b": "a__underscores__b", "ä": "ä", "1a": "1a"} {
		if got := Identifier(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestNumbersKeepTheirType(t *testing.T) {
	typ := NewObject("o", Field{Name: "i", Type: Int}, Field{Name: "d", Type: Double}, Field{Name: "any", Type: Dyn})
	v, err := typ.Decode(json.RawMessage(`{"i":9.0,"d":9,"any":9223372036854775807,"big":1e400}`))
	if err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	if m["i"] != int64(9) || m["d"] != 9.0 || m["any"] != int64(9223372036854775807) || m["big"] != "1e400" {
		t.Errorf("got %#v", m)
	}
}

func TestEnvRefusesClashes(t *testing.T) {
	if _, err := NewEnv(Var{"a", Int}, Var{"a", Int}); err == nil {
		t.Error("a variable was declared twice")
	}
	if _, err := NewEnv(Var{"a", NewObject("T")}, Var{"b", List(NewObject("T"))}); err == nil {
		t.Error("one name stands for two types")
	}
}

func TestStringsAndMessages(t *testing.T) {
	env := testEnv(t)
	p, err := env.String("'n is ' + string(n)")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.EvalString(t.Context(), Input{Vars: map[string]any{"n": 3}}); err != nil || s != "n is 3" {
		t.Errorf("got %q, %v", s, err)
	}
	if s, err := p.EvalString(t.Context(), Input{Vars: map[string]any{}, Unknown: NewUnknowns([]string{"n"})}); err == nil {
		t.Errorf("an unknown text is %q", s)
	}
	_, err = env.Bool("call.args.pth == ''")
	if err == nil || err.Error() != "call.args has no field pth; did you mean path?" {
		t.Errorf("got %v", err)
	}
	var e *Error
	if _, err = env.Bool("true &&\n  cal.id == ''"); !errors.As(err, &e) || e.Line != 2 || e.Col != 3 {
		t.Errorf("got %+v, want line 2, column 3", e)
	}
	if _, err = env.Bool(strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500)); err == nil {
		t.Error("500 parentheses were accepted")
	}
	if _, err = env.Bool(strings.Repeat("true || ", 4000) + "true"); err == nil {
		t.Error("a text of 32,000 characters was accepted")
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"pth": "path", "PATH": "path", "ofset": "offset", "lmiit": "limit", "zzz": "", "p": "", "": ""} {
		got := strings.TrimSuffix(strings.TrimPrefix(Nearest(name, []string{"path", "offset", "limit"}), "did you mean "), "?")
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(schemaText, `{"path":"a","max-size":1}`)
	f.Add(`{"properties":{"a":true,"a__b":{"type":[]}},"items":3}`, `{"a":[1e9999,{}]}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}}}}}`, `{}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		typ, err := FromSchema("args", json.RawMessage(schema))
		if err != nil {
			return
		}
		env, err := NewEnv(Var{"args", typ})
		if err != nil {
			t.Fatalf("%q: %v", schema, err)
		}
		p, err := env.Bool("args == args")
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%q: %v", schema, err)
			}
			return
		}
		v, err := typ.Decode(json.RawMessage(value))
		if err != nil {
			return
		}
		_, _ = p.EvalBool(t.Context(), Input{Vars: map[string]any{"args": v}, Large: true})
		for _, name := range typ.Fields()[:min(3, len(typ.Fields()))] {
			if q, err := env.Bool("has(args." + name + ")"); err == nil {
				if _, err := q.EvalBool(t.Context(), Input{Vars: map[string]any{"args": v}, Large: true}); err != nil && strings.HasPrefix(value, "{") {
					t.Errorf("%q has(%s) on %q: %v", schema, name, value, err)
				}
			}
		}
	})
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		"call.args.path == ''", "call.args.list.all(x, x > n)", "has(call.args.x) && true", "call.args.?nested.?inner", "cmd.commands[0].x", "[1, 2].map(x, x * 2)", "'a'.matches('(a*)*')",
		"[].exists(i, i == n)", "{'a': n}.a == 1", "n in []", "optional.of(true).orValue(n == 1)", "n == 1 ? true : true",
	} {
		f.Add(s)
	}
	env := testEnv(f)
	f.Fuzz(func(t *testing.T, src string) {
		if s, err := Parse(src); err == nil {
			s.Guarded("x", "call", "args")
			s.Fields("call", "args")
		}
		p, err := env.Any(src)
		if err != nil {
			return
		}
		vars := map[string]any{"n": 1, "call": map[string]any{"id": "x", "args": map[string]any{"path": "a", "list": []any{int64(1)}}}}
		_, _ = p.Eval(t.Context(), vars)
		if _, constant := p.withoutInput(); constant && env.needsInput(p.ast.NativeRep().Expr()) {
			t.Errorf("%q has a value without input", src)
		}
	})
}
