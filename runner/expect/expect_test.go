package expect

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expr"
)

func contract() Contract {
	return Contract{
		Tools:  []string{"read", "bash"},
		Inputs: json.RawMessage(`{"type":"object","properties":{"who":{"type":"object","properties":{"name":{"type":"string"}}}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string","enum":["good","bad"]}}}`),
	}
}

func TestExpectationsAreTyped(t *testing.T) {
	set := NewSet(contract())
	for name, c := range map[string]struct{ reason, expression, want string }{
		"end":            {"how a run ends", "result.phase == 'Succeeded' && result.reason == 'Completed' && result.exitCode == 0", ""},
		"word":           {"phases are a closed list", "result.phase == 'Sucseeded'", "did you mean Succeeded?"},
		"reason":         {"so are reasons", "result.reason in ['Completed', 'MaxStep']", "did you mean MaxSteps?"},
		"object reason":  {"a run does not end as an object", "result.reason == 'Accepted'", `result.reason is never "Accepted"`},
		"tool":           {"an agent has these tools", "calls.exists(c, c.tool == 'bsh')", "did you mean bash?"},
		"decision":       {"decisions are four", "calls.all(c, c.decision != 'denied')", "did you mean deny?"},
		"error":          {"codes of calls are a closed list", "calls.exists(c, c.error == 'time_out')", "did you mean timeout?"},
		"none":           {"no word is the empty one", "calls.all(c, c.error == '' && c.approval == '')", ""},
		"arguments":      {"those of a call are free", "calls[0].args.path.startsWith('x')", ""},
		"answer":         {"an answer has a schema", "result.structured.verdict == 'fine'", "allowed are good, bad"},
		"answer field":   {"and its fields", "result.structured.verdikt == 'good'", "did you mean verdict?"},
		"inputs":         {"so have inputs, at any depth", "inputs.who.name == prompt", ""},
		"inputs field":   {"and no others", "inputs.who.nmae == prompt", "did you mean name?"},
		"files":          {"files have a path", "files['a/b'].change == 'added' && 'c' in files && files.all(f, f.endsWith('.md'))", ""},
		"change":         {"and what happened to them", "files['a'].change == 'created'", `is never "created"`},
		"events":         {"events have a type", "events.exists(e, e.type == 'policy.decison')", "did you mean policy.decision?"},
		"pieces":         {"and no pieces", "events.exists(e, e.type == 'tool.input-delta')", "is never"},
		"children":       {"runs below have calls", "children.exists(c, c.agent == 'x' && c.calls.exists(k, k.tool == 'anything'))", ""},
		"cost":           {"money is a number", "result.cost < 0.5 && result.tokens.total <= 100", ""},
		"no condition":   {"an expectation is true or false", "size(calls)", "must be of type bool"},
		"no such name":   {"variables are these", "reslt.steps == 1", "did you mean result?"},
		"syntax":         {"what cannot be read", "result.steps ==", "syntax error"},
		"too costly":     {"what would take too long", "events.all(a, events.all(b, events.all(c, a.seq + b.seq > c.seq)))", "may cost"},
		"secret pattern": {"a pattern that is none", "result.output.matches('(')", "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := set.Compile(c.expression)
			_, ours := errors.AsType[*expr.Error](err)
			if (err == nil) != (c.want == "") || err != nil && (!ours || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

func TestWithoutAContractMoreIsPossible(t *testing.T) {
	set := NewSet(Contract{Inputs: json.RawMessage("{"), Output: json.RawMessage("[]")})
	for _, expression := range []string{"calls.exists(c, c.tool == 'server_anything')", "inputs.anything == 1", "result.structured.any.thing == 1"} {
		if _, err := set.Compile(expression); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

func TestWhatAnExpectationReads(t *testing.T) {
	set := NewSet(contract())
	for expression, want := range map[string][3]bool{ // the end, files, events
		"result.output == 'x'":                             {},
		"result.phase == 'Failed'":                         {true, false, false},
		"!(result.exitCode in [0, 3])":                     {true, false, false},
		"size(files) == 0 || result.reason == 'Completed'": {true, true, false},
		"events.exists(e, e.seq > 3)":                      {false, false, true},
		"calls.exists(c, c.output == 'result.phase')":      {},
	} {
		e, err := set.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]bool{e.JudgesEnd(), e.ReadsFiles(), e.ReadsEvents()}; got != want {
			t.Errorf("%s reads %v, want %v", expression, got, want)
		}
	}
}

func TestConstantsAreFound(t *testing.T) {
	set := NewSet(contract())
	for expression, want := range map[string]string{
		"true": "true", "1 > 2": "false", "result.steps == 1 || true": "true", "false && size(calls) == 1": "false", "result.steps == 1": "", "calls.exists(c, false)": "",
	} {
		e, err := set.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if value, constant := e.Constant(); constant {
			got = strconv.FormatBool(value)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

// values are those of a small run.
func values() map[string]any {
	call := func(tool, decision, code string) any {
		return map[string]any{"tool": tool, "args": map[string]any{"command": "a > b"}, "decision": decision, "error": code}
	}
	return map[string]any{
		"result":    map[string]any{"phase": "Succeeded", "steps": int64(2), "output": "done"},
		"calls":     []any{call("read", "allow", ""), call("bash", "deny", "denied")},
		"files":     map[string]any{"b": map[string]any{"change": "added"}, "a": map[string]any{"change": "deleted"}},
		"events":    []any{map[string]any{"type": "step.start"}, map[string]any{"type": "step.start"}, map[string]any{"type": "warning"}},
		"decisions": []any{map[string]any{"tool": "bash", "action": "deny", "rule": "p/r"}}, "children": []any{},
	}
}

func TestWhatIsNotMetShowsItsValues(t *testing.T) {
	set := NewSet(contract())
	for name, c := range map[string]struct {
		reason, expression string
		err                string
		want               []Value
	}{
		"met":   {"what is true needs no explanation", "result.steps == 2", "", nil},
		"parts": {"the parts of a row", "result.steps == 2 && result.output == 'other'", "", []Value{{"result.steps == 2 && result.output == \"other\"", "false"}, {"result.steps == 2", "true"}, {"result.steps", "2"}, {"result.output == \"other\"", "false"}, {"result.output", `"done"`}}},
		"list":  {"a list in a few words", "size(calls) == 3", "", []Value{{"size(calls) == 3", "false"}, {"size(calls)", "2"}, {"calls", `read {"command":"a > b"} allow; bash {"command":"a > b"} deny denied`}}},
		"error": {"what cannot be evaluated is not met, and the files that there are help", "files['c'].change == 'added'", "no such key: c", []Value{{"files", "a deleted; b added"}}},
		"none":  {"an empty list", "children.exists(c, c.agent == 'x')", "", []Value{{"children.exists(c, c.agent == \"x\")", "false"}, {"children", "none"}}},
		"count": {"events by their type", "events.all(e, e.type == 'warning')", "", []Value{{"events.all(e, e.type == \"warning\")", "false"}, {"events", "2 step.start; 1 warning"}}},
		"who":   {"decisions by their rule", "decisions.all(d, d.action == 'allow')", "", []Value{{"decisions.all(d, d.action == \"allow\")", "false"}, {"decisions", "bash deny by p/r"}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := set.Compile(c.expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Judge(t.Context(), values())
			if err != nil {
				t.Fatal(err)
			}
			if got.Met != (len(c.want) == 0) || (got.Err == nil) != (c.err == "") || got.Err != nil && !strings.Contains(got.Err.Error(), c.err) {
				t.Errorf("%s: met %t, error %v", c.reason, got.Met, got.Err)
			}
			if diff := cmp.Diff(c.want, got.Values); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAJudgementEndsWithItsContext(t *testing.T) {
	e, err := NewSet(contract()).Compile("result.steps == 2")
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if v, err := e.Judge(ctx, values()); !errors.Is(err, why) || v.Met {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestConditionsOverQuestions(t *testing.T) {
	q := Question{Agent: "a", Call: message.ToolCall{Tool: "bash", Args: json.RawMessage(`{"command":"git push","n":3}`)}, Rule: "p/r", Message: "this publishes"}
	for when, want := range map[string]bool{
		"args.command.startsWith('git push')": true, "tool == 'bash' && rule == 'p/r' && agent == 'a'": true, "message.contains('publishes') && args.n == 3": true, "args.command == 'ls'": false,
	} {
		c, err := CompileQuestion(when)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Holds(t.Context(), q); err != nil || got != want {
			t.Errorf("%s: %t, %v", when, got, err)
		}
	}
	c, err := CompileQuestion("args.path == 'x'")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Holds(t.Context(), q); err == nil {
		t.Error("an argument that is not there is no error")
	}
	if _, err := c.Holds(t.Context(), Question{Call: message.ToolCall{Args: json.RawMessage("{")}}); err == nil {
		t.Error("arguments that are not JSON are no error")
	}
	if _, err := CompileQuestion("tol == 'bash'"); err == nil || !strings.Contains(err.Error(), "did you mean tool?") {
		t.Errorf("got %v", err)
	}
}

// TestEveryCodeIsAWord: a code that is added to package message can be expected.
func TestEveryCodeIsAWord(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../api/message/toolcall.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); !ok || typ.Name != "ErrorCode" {
			return true
		}
		lit, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		found++
		word, err := strconv.Unquote(lit.Value)
		if err != nil || !slices.Contains(codes, message.ErrorCode(word)) {
			t.Errorf("the code %s is not among the words of calls", lit.Value)
		}
		return true
	})
	if found != len(codes) {
		t.Errorf("%d codes found, %d are words", found, len(codes))
	}
}

func BenchmarkExpectation(b *testing.B) {
	set := NewSet(contract())
	e, err := set.Compile("result.steps == 2 && calls.exists(c, c.tool == 'bash' && c.decision == 'deny')")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v, err := e.Judge(b.Context(), values()); err != nil || !v.Met {
			b.Fatal(v, err)
		}
	}
}
