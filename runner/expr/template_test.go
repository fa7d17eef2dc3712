package expr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func newTexts(t *testing.T) *Texts {
	t.Helper()
	return NewTexts(func() (*Env, error) {
		return NewEnv(Var{Name: "inputs", Type: Map(Dyn)})
	})
}

func vars() map[string]any {
	return map[string]any{"inputs": map[string]any{"n": int64(3), "list": []any{"a", int64(1)}, "s": "<x>", "long": strings.Repeat("x", 60_000)}}
}

func TestAValueKeepsItsTypeWhereItIsAlone(t *testing.T) {
	for text, want := range map[string]string{
		"${inputs.n}":         `3`,
		"${inputs.list}":      `["a",1]`,
		"n=${inputs.n}":       `"n=3"`,
		"${inputs.n} ":        `"3 "`,
		"$${inputs.n}":        `"${inputs.n}"`,
		"${b'x'}":             `"x"`,
		"${duration('90s')}":  `"1m30s"`,
		"${null}":             `null`,
		"${inputs.s}":         `"<x>"`,
		"plain":               `"plain"`,
		"${inputs.list}${''}": `"[\"a\",1]"`,
	} {
		v, err := newTexts(t).Value(t.Context(), "at", text, vars())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := encode(v)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestAnExpressionIsCompiledOnce(t *testing.T) {
	s := newTexts(t)
	for range 3 {
		if _, err := s.Text(t.Context(), "at", "${inputs.n} ${inputs.n}", vars()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.exprs) != 1 {
		t.Errorf("%d expressions were compiled", len(s.exprs))
	}
}

// One text that is named many times would be written many times.
func TestValuesAreBounded(t *testing.T) {
	for _, text := range []string{
		"${lists.range(1000).map(i, inputs.long)}",
		"${{'a': lists.range(1000).map(i, {'b': inputs.long})}}",
		strings.Repeat("${inputs.long}", 20),
	} {
		if _, err := newTexts(t).Text(t.Context(), "at", text, vars()); !errors.Is(err, errTooLong) {
			t.Errorf("%.50s: %v, want %v", text, err, errTooLong)
		}
	}
	if _, err := newTexts(t).Value(t.Context(), "at", "${lists.range(1000).map(i, inputs.long)}", vars()); !errors.Is(err, errTooLong) {
		t.Errorf("a value alone: %v", err)
	}
}

func TestArgumentsAreRewrittenDeeply(t *testing.T) {
	var at []string
	got, err := FillArgs(json.RawMessage(`{"b":[{"x":"1"},true,2.50],"a":"2","${k}":"3"}`), "args", func(path, text string) (any, error) {
		at = append(at, path+"="+text)
		return text + "!", nil
	})
	if want := `{"${k}":"3!","a":"2!","b":[{"x":"1!"},true,2.50]}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if want := "args.${k}=3 args.a=2 args.b[0].x=1"; strings.Join(at, " ") != want {
		t.Errorf("visited %v, want %s", at, want)
	}
	if got, err := FillArgs(nil, "args", nil); got != "{}" || err != nil {
		t.Errorf("no arguments: %s, %v", got, err)
	}
	for _, raw := range []string{`[1]`, `null`, `"x"`} {
		if _, err := FillArgs(json.RawMessage(raw), "args", nil); err == nil {
			t.Errorf("%s is taken as arguments", raw)
		}
	}
}

func TestInspectReportsEveryMistake(t *testing.T) {
	var bad []string
	good := 0
	newTexts(t).Inspect("${inputs.n} ${nope} ${1 +}", func(err error) { bad = append(bad, fmt.Sprint(err)) }, func(*Program) { good++ })
	if len(bad) != 2 || good != 1 || !strings.HasPrefix(bad[0], "${nope}: ") {
		t.Errorf("%d good, bad: %q", good, bad)
	}
	newTexts(t).Inspect("${", func(err error) { bad = append(bad, fmt.Sprint(err)) }, nil)
	if len(bad) != 3 {
		t.Errorf("an open brace: %q", bad)
	}
}

func TestAnEndedContextEndsAnEvaluation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newTexts(t).Text(ctx, "at", "${lists.range(5000).filter(i, i > 4998)}", vars()); err == nil {
		t.Error("it was evaluated")
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"${a}", "$${a}", "${'}'}", "${{'a':1}}", "${r'\\'}", "${'''}'''}", "${", "$$${x}", "${\"\\\"}\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		segments, err := parse(s)
		if err != nil {
			return
		}
		var back strings.Builder
		literal := true
		for _, p := range segments {
			if p.text == "" {
				t.Fatalf("empty segment in %q", s)
			}
			literal = literal && !p.expr
			back.WriteString(p.text)
		}
		if literal && back.String() != strings.ReplaceAll(s, "$${", "${") {
			t.Fatalf("parse(%q) = %q", s, back.String())
		}
	})
}
