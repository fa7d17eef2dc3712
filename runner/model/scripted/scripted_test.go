package scripted

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var _ model.Conversation = (*Conversation)(nil)

func args(s string) *v1alpha1.JSON { return &v1alpha1.JSON{Raw: []byte(s)} }

func call(tool, a string) []v1alpha1.ScriptCall {
	return []v1alpha1.ScriptCall{{Tool: tool, Args: args(a)}}
}

func script(steps ...v1alpha1.ScriptStep) *v1alpha1.Script { return &v1alpha1.Script{Steps: steps} }

func begin(t *testing.T, s *v1alpha1.Script) *Conversation {
	t.Helper()
	if p := Check(s); len(p) > 0 {
		t.Fatalf("the script has mistakes: %v", p)
	}
	c, err := New(s, Options{Name: "m", Prompt: "Fix it.", Inputs: []byte(`{"n":3,"big":9007199254740993,"f":0.5,"list":["a",1],"s":"<x>"}`)}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func quiet(message.Delta) error { return nil }

func ask(t *testing.T, c *Conversation) *message.Output {
	t.Helper()
	out, err := c.Next(t.Context(), message.Request{}, quiet)
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return out
}

// play asks, gives every call the same result and returns what was said.
func play(t *testing.T, c *Conversation, r message.ToolResult) string {
	t.Helper()
	out := ask(t, c)
	results := make([]*message.ToolResult, len(out.Calls))
	for i := range results {
		results[i] = &r
	}
	if err := c.Append(modeltest.ToMessage(out, "m", results...)); err != nil {
		t.Fatal(err)
	}
	return out.Text
}

func TestStepsAreTakenInOrder(t *testing.T) {
	c := begin(t, script(
		v1alpha1.ScriptStep{Say: "never", When: "turn > 100"},
		v1alpha1.ScriptStep{Say: "second", When: "turn == 1"},
		v1alpha1.ScriptStep{Say: "first"},
		v1alpha1.ScriptStep{Say: "failed", When: "last.exitCode != 0"},
		v1alpha1.ScriptStep{Say: "third"},
	))
	var said []string
	for range 3 {
		said = append(said, play(t, c, message.ToolResult{}))
	}
	if d := cmp.Diff([]string{"first", "second", "third"}, said); d != "" {
		t.Error(d)
	}
	// None left is an empty answer, as often as it is asked.
	for range 2 {
		out := ask(t, c)
		if out.Text != "" || len(out.Calls) > 0 || out.Finish != message.FinishStop {
			t.Errorf("no step left: %+v", out)
		}
	}
}

func TestExpressions(t *testing.T) {
	cases := map[string]struct{ say, want string }{
		"plain":         {"no expression", "no expression"},
		"prompt":        {"> ${prompt} <", "> Fix it. <"},
		"turn":          {"${turn}${turn + 1}", "01"},
		"input":         {"${inputs.n} ${inputs.f} ${inputs.big}", "3 0.5 9007199254740993"},
		"list":          {"${inputs.list}", `["a",1]`},
		"no html":       {"${inputs.s} ${{'k': inputs.s}}", `<x> {"k":"<x>"}`},
		"bool and null": {"${true} ${null}", "true null"},
		"before any":    {"[${last.output}] ${last.exitCode} [${last.error}] [${last.tool}]", "[] 0 [] []"},
		"literal":       {"$${prompt} $$ $ {x} ${'}'} ${\"${\"}", "${prompt} $$ $ {x} } ${"},
		"twice dollar":  {"$$${prompt}", "$${prompt}"},
		"map":           {"${{'a': {'b': 1}}.a.b}", "1"},
		"raw string":    {`${r'\'} ${'\''} ${'''it's }'''}`, `\ ' it's }`},
		"comparison":    {"${inputs.n == 3 ? 'three' : 'other'}", "three"},
		"text":          {"${'☃'}", "☃"},
	}
	for name, c := range cases {
		if got := ask(t, begin(t, script(v1alpha1.ScriptStep{Say: c.say, Reasoning: c.say}))); got.Text != c.want || got.Reasoning != c.want {
			t.Errorf("%s: %q, want %q", name, got.Text, c.want)
		}
	}
}

func TestArgumentsAreRenderedDeeply(t *testing.T) {
	s := script(v1alpha1.ScriptStep{Calls: []v1alpha1.ScriptCall{
		{Tool: "edit", Args: args(`{"path":"a.txt","n":1.50,"deep":[{"x":"${prompt} & <b>"},true,null],"${k}":"v","whole":"${inputs.n}"}`)},
		{Tool: "todo"},
	}})
	out := ask(t, begin(t, s))
	want := []message.CallRequest{
		{ID: "call_1_1", Tool: "edit", Args: `{"${k}":"v","deep":[{"x":"Fix it. & <b>"},true,null],"n":1.50,"path":"a.txt","whole":"3"}`},
		{ID: "call_1_2", Tool: "todo", Args: "{}"},
	}
	if d := cmp.Diff(want, out.Calls); d != "" || out.Finish != message.FinishToolCalls {
		t.Errorf("finish %s (-want +got):\n%s", out.Finish, d)
	}
	if got := string(s.Steps[0].Calls[0].Args.Raw); !strings.Contains(got, "${prompt}") {
		t.Errorf("the manifest was changed: %s", got)
	}
}

func TestLastIsTheLatestResult(t *testing.T) {
	c := begin(t, script(
		v1alpha1.ScriptStep{Calls: append(call("read", `{}`), call("bash", `{"command":"x"}`)...)},
		v1alpha1.ScriptStep{Say: "${last.tool} ${last.exitCode} ${last.error} ${last.output}", When: "last.exitCode != 0 && last.output.contains('boom')"},
	))
	exit := 7
	out := ask(t, c)
	m := modeltest.ToMessage(out, "m", &message.ToolResult{Output: "first"}, &message.ToolResult{Output: "boom\xff", Text: "footer", ExitCode: &exit, Code: message.CodeTool})
	if err := c.Append(m); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c).Text; got != "bash 7 tool boom\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestLargeOutputsCanBeRead(t *testing.T) {
	c := begin(t, script(
		v1alpha1.ScriptStep{Calls: call("bash", `{}`)},
		v1alpha1.ScriptStep{Say: "${last.output.contains('END')} ${size(last.output) > 50000} ${last.output.matches('E.D$')}"},
	))
	if err := c.Append(modeltest.ToMessage(ask(t, c), "m", &message.ToolResult{Output: strings.Repeat("a line of it\n", 3938) + "END"})); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c).Text; got != "true true true" {
		t.Errorf("got %q", got)
	}
}

func TestResumeGoesOnWhereItStopped(t *testing.T) {
	s := script(
		v1alpha1.ScriptStep{Say: "a", When: "turn % 2 == 0"},
		v1alpha1.ScriptStep{Say: "b", When: "last.output == 'even'"},
		v1alpha1.ScriptStep{Say: "c", Calls: call("bash", `{"t":"${turn}"}`)},
		v1alpha1.ScriptStep{Say: "d", When: "turn % 2 == 0"},
		v1alpha1.ScriptStep{Say: "e"},
		v1alpha1.ScriptStep{Say: "f"},
	)
	result := func(turn int) *message.ToolResult {
		return &message.ToolResult{Output: map[bool]string{true: "even", false: "odd"}[turn%2 == 0]}
	}
	var history []*message.Message
	var said []string
	c := begin(t, s)
	for turn := range 7 {
		out := ask(t, c)
		said = append(said, out.Text)
		m := modeltest.ToMessage(out, fmt.Sprint(turn), result(turn))
		history = append(history, m)
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	for stop := range history {
		c := begin(t, s)
		for _, m := range history[:stop] {
			if err := c.Append(&message.Message{Role: message.RoleUser}); err != nil {
				t.Fatal(err)
			}
			if err := c.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		var rest []string
		for turn := stop; turn < 7; turn++ {
			out := ask(t, c)
			rest = append(rest, out.Text)
			if err := c.Append(modeltest.ToMessage(out, "x", result(turn))); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(said[stop:], rest); d != "" {
			t.Errorf("resumed after %d answers (-want +got):\n%s", stop, d)
		}
	}
}

func TestBasics(t *testing.T) {
	modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
		t.Helper()
		s := script()
		for _, a := range answers {
			step := v1alpha1.ScriptStep{Say: a.Text, Reasoning: a.Reasoning}
			for _, c := range a.Calls {
				step.Calls = append(step.Calls, v1alpha1.ScriptCall{Tool: c.Tool, Args: args(c.Args)})
			}
			s.Steps = append(s.Steps, step)
		}
		c, err := New(s, Options{Name: "m"}, message.Prompt{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

// A run with a summary in it is taken up again behind any of its messages.
func TestSummariesUseUpTheirStepOnAResume(t *testing.T) {
	s := script(v1alpha1.ScriptStep{Say: "one"}, v1alpha1.ScriptStep{Say: "summary", When: "turn == 1"}, v1alpha1.ScriptStep{Say: "two"}, v1alpha1.ScriptStep{Say: "three"})
	m := func(text string, change ...func(*message.Message)) *message.Message {
		m := &message.Message{
			Role: message.RoleAssistant, Finish: message.FinishStop, Model: &message.ModelRef{Name: "m"},
			Parts: []message.Part{{Type: message.PartText, Text: text}},
		}
		for _, c := range change {
			c(m)
		}
		return m
	}
	summary := func(m *message.Message) { m.Summary = true }
	void := func(m *message.Message) { m.Error = message.Void }
	other := func(m *message.Message) { m.Model.Name = "other" }
	for name, c := range map[string]struct {
		reason  string
		history []*message.Message
		want    string
	}{
		"nothing":          {"a run begins", nil, "one"},
		"answer":           {"an answer uses up its step", []*message.Message{m("one")}, "summary"},
		"summary":          {"a summary was an answer, too", []*message.Message{m("one"), m("summary", summary)}, "two"},
		"whole":            {"both count as turns", []*message.Message{m("one"), m("summary", summary), m("two")}, "three"},
		"void answer":      {"nobody has answered", []*message.Message{m("one", void)}, "one"},
		"void summary":     {"nobody has answered", []*message.Message{m("one"), m("summary", summary, void)}, "summary"},
		"of another model": {"the step is unused and the turn is over", []*message.Message{m("first", other)}, "one"},
		"fallback's":       {"the turn of another model counts", []*message.Message{m("one", other), m("summary", summary, other)}, "one"},
	} {
		conversation := begin(t, s)
		for _, m := range c.history {
			if err := conversation.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		if got := ask(t, conversation).Text; got != c.want {
			t.Errorf("%s: %q, want %q: %s", name, got, c.want, c.reason)
		}
		if got := conversation.turn; got != int64(1+len(c.history)-strings.Count(name, "void")) {
			t.Errorf("%s: turn %d", name, got)
		}
	}
	// Where it was asked and appended in one life, nothing counts twice.
	live := begin(t, s)
	first := ask(t, live)
	out, err := live.Next(t.Context(), message.Request{Aside: &message.Aside{Text: "x"}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(live.Append(m(out.Text, summary)), live.Append(m(first.Text))); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, live).Text; got != "two" {
		t.Errorf("after both were appended: %q, want two", got)
	}
}

func TestVoidAnswersUseNothing(t *testing.T) {
	c := begin(t, script(v1alpha1.ScriptStep{Say: "one"}, v1alpha1.ScriptStep{Say: "two"}))
	if err := c.Append(&message.Message{Role: message.RoleAssistant, Error: "Aborted"}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if _, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("emit's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx, message.Request{}, quiet); reason.Of(err) != reason.Cancelled {
		t.Fatalf("cancelled: %v", err)
	}
	if got := ask(t, c).Text; got != "one" {
		t.Errorf("a failed answer used a step up: %q", got)
	}
	// An answer that was complete is used up even if it is not appended.
	if got := ask(t, c).Text; got != "two" {
		t.Errorf("got %q", got)
	}
}

func TestClosingRequestDropsCalls(t *testing.T) {
	c := begin(t, script(v1alpha1.ScriptStep{Say: "bye", Calls: call("bash", `{}`)}))
	out, err := c.Next(t.Context(), message.Request{NoTools: true}, quiet)
	if err != nil || len(out.Calls) != 0 || out.Text != "bye" || out.Finish != message.FinishStop {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestFailedExpressionsNameTheirPlace(t *testing.T) {
	cases := map[string]struct {
		step v1alpha1.ScriptStep
		says string
	}{
		"when":      {v1alpha1.ScriptStep{When: "inputs.nope == 1"}, "steps[1].when: inputs.nope == 1"},
		"say":       {v1alpha1.ScriptStep{Say: "${inputs.nope}"}, "steps[1].say: ${inputs.nope}"},
		"reasoning": {v1alpha1.ScriptStep{Reasoning: "${1 / turn}"}, "steps[1].reasoning: ${1 / turn}"},
		"args":      {v1alpha1.ScriptStep{Calls: call("x", `{"a":[{"b":"${inputs.nope}"}]}`)}, "steps[1].calls[0].args.a[0].b: ${inputs.nope}"},
	}
	for name, c := range cases {
		conv := begin(t, script(v1alpha1.ScriptStep{When: "false"}, c.step))
		out, err := conv.Next(t.Context(), message.Request{}, quiet)
		if out != nil || reason.Of(err) != reason.ModelError || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}

func TestCheckFindsEveryMistake(t *testing.T) {
	s := script(
		v1alpha1.ScriptStep{When: "turn ==", Say: "${prompt", Reasoning: "${}"},
		v1alpha1.ScriptStep{When: "prompt", Say: "${last.exitcode}"},
		v1alpha1.ScriptStep{Calls: []v1alpha1.ScriptCall{{Args: args(`["x"]`)}, {Tool: "t", Args: args(`{"a":{"b":["ok","${promt} ${also bad}"]}}`)}}},
	)
	var got []string
	for _, p := range Check(s) {
		got = append(got, p.Path)
	}
	want := []string{
		"spec.scripted.steps[0].when", "spec.scripted.steps[0].reasoning", "spec.scripted.steps[0].say",
		"spec.scripted.steps[1].when", "spec.scripted.steps[1].say",
		"spec.scripted.steps[2].calls[0].tool", "spec.scripted.steps[2].calls[0].args",
		"spec.scripted.steps[2].calls[1].args.a.b[1]", "spec.scripted.steps[2].calls[1].args.a.b[1]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s\n%v", d, Check(s))
	}
	// The run refuses what the check refuses.
	c, err := New(s, Options{}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context(), message.Request{}, quiet); reason.Of(err) != reason.ModelError {
		t.Errorf("got %v", err)
	}
}

func TestNewRefusesInputsThatAreNoObject(t *testing.T) {
	for _, in := range []string{"[]", "1", "{", `"x"`} {
		if _, err := New(nil, Options{Inputs: []byte(in)}, message.Prompt{}); err == nil {
			t.Errorf("%s was taken", in)
		}
	}
	c, err := New(nil, Options{Inputs: []byte("null")}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	if out := ask(t, c); out.Text != "" {
		t.Errorf("no script: %+v", out)
	}
}

func TestProgramIsShared(t *testing.T) {
	s := script(v1alpha1.ScriptStep{Say: "${prompt}", When: "turn == 0"})
	p := NewProgram(s)
	if problems := p.Check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, prompt := range []string{"one", "two"} {
		c, err := New(s, Options{Prompt: prompt, Program: p}, message.Prompt{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, c).Text; got != prompt {
			t.Errorf("got %q, want %q", got, prompt)
		}
	}
}

func TestDeltasMakeTheAnswer(t *testing.T) {
	text := strings.Repeat("ein längerer Text ☃ ", 20)
	c := begin(t, script(v1alpha1.ScriptStep{Say: text, Reasoning: text, Calls: call("bash", `{"command":"ls"}`)}))
	got := map[message.DeltaKind]string{}
	n := 0
	out, err := c.Next(t.Context(), message.Request{}, func(d message.Delta) error {
		got[d.Kind] += d.Text
		n++
		return nil
	})
	if err != nil || got[message.DeltaText] != out.Text || got[message.DeltaReasoning] != out.Reasoning || got[message.DeltaTool] != out.Calls[0].Args {
		t.Errorf("streamed %v, answered %+v, %v", got, out, err)
	}
	if n < 5 || n > 12 {
		t.Errorf("%d deltas: a few are due", n)
	}
}
