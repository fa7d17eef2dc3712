package steps

import (
	"encoding/json"
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

func step(name, tool, args string, change ...func(*v1alpha1.SkillStep)) v1alpha1.SkillStep {
	s := v1alpha1.SkillStep{Name: name, Tool: tool, Args: &v1alpha1.JSON{Raw: []byte(args)}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func when(src string) func(*v1alpha1.SkillStep) { return func(s *v1alpha1.SkillStep) { s.When = src } }

func each(src string) func(*v1alpha1.SkillStep) {
	return func(s *v1alpha1.SkillStep) { s.ForEach = src }
}
func goesOn(s *v1alpha1.SkillStep) { s.OnError = v1alpha1.StepContinue }
func asks(s *v1alpha1.SkillStep)   { s.Approval = true }

func begin(t testing.TB, p *v1alpha1.SkillPlan, inputs string) *Conversation {
	t.Helper()
	var in map[string]json.RawMessage
	if err := json.Unmarshal([]byte(inputs), &in); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Skill: "s", Plan: p, Inputs: in, As: message.ModelRef{Name: "plan"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func quiet(message.Delta) error { return nil }

// echo answers a call with its arguments.
func echo(call message.CallRequest) *message.ToolResult {
	return &message.ToolResult{Text: call.Args, Output: call.Args}
}

// play carries a plan out to its end and returns its calls, its output, and the messages.
func play(t testing.TB, c *Conversation, result func(message.CallRequest) *message.ToolResult) (calls []string, output string, history []*message.Message, err error) {
	t.Helper()
	for range 1000 {
		out, err := c.Next(t.Context(), message.Request{}, quiet)
		if err != nil {
			return calls, "", history, err
		}
		if len(out.Calls) == 0 {
			return calls, out.Text, history, nil
		}
		results := make([]*message.ToolResult, len(out.Calls))
		for i, call := range out.Calls {
			calls = append(calls, call.Tool+" "+call.Args)
			results[i] = result(call)
		}
		m := modeltest.ToMessage(out, "plan", results...)
		for _, call := range m.Calls() {
			if call.Result.Code != message.CodeDenied {
				call.Start = 1
			}
		}
		history = append(history, m)
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the plan has no end")
	return nil, "", nil, nil
}

func TestStepsReadEarlierResults(t *testing.T) {
	exit := 3
	plan := &v1alpha1.SkillPlan{
		Steps: []v1alpha1.SkillStep{
			step("", "read", `{"path":"${inputs.file}"}`),
			step("never", "write", `{}`, when("steps.read.output == ''")),
			step("list", "grep", `{"n":"${item}","i":"${index}","text":"${item}-${index}"}`, each("steps.read.data.list.filter(x, x > 1)")),
			step("none", "grep", `{}`, each("[]")),
			step("fails", "bash", `{"command":"false"}`, goesOn),
			step("last", "write", `{"skipped":"${!steps.never.ran && !steps.none.ran}","items":"${steps.list.items.map(i, i.item)}","code":"${steps.fails.exitCode}","error":"${steps.fails.error}"}`,
				when("steps.fails.error != '' && steps.list.items[1].output != ''")),
		},
		Output: "${size(steps.list.items)} of ${inputs.file}",
	}
	if problems := Check(plan); len(problems) > 0 {
		t.Fatal(problems)
	}
	calls, output, _, err := play(t, begin(t, plan, `{"file":"a.json"}`), func(call message.CallRequest) *message.ToolResult {
		switch call.Tool {
		case "read":
			return &message.ToolResult{Output: ` {"list":[1,2,3]}`}
		case "bash":
			return &message.ToolResult{Output: "no", ExitCode: &exit}
		}
		return echo(call)
	})
	want := []string{
		`read {"path":"a.json"}`,
		`grep {"i":0,"n":2,"text":"2-0"}`,
		`grep {"i":1,"n":3,"text":"3-1"}`,
		`bash {"command":"false"}`,
		`write {"code":3,"error":"exit","items":[2,3],"skipped":true}`,
	}
	if d := cmp.Diff(want, calls); d != "" || err != nil || output != "2 of a.json" {
		t.Errorf("output %q, %v (-want +got)\n%s", output, err, d)
	}
}

func TestAPlanEndsWithTheLastOutput(t *testing.T) {
	plan := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{step("a", "x", `{"v":1}`), step("b", "x", `{}`, when("false"))}}
	if _, output, _, err := play(t, begin(t, plan, `{}`), echo); output != `{"v":1}` || err != nil {
		t.Errorf("output %q, %v", output, err)
	}
	plan.Steps = plan.Steps[1:]
	if calls, output, _, err := play(t, begin(t, plan, `{}`), echo); output != "The plan of skill s is complete." || err != nil || calls != nil {
		t.Errorf("nothing to do: %v, %q, %v", calls, output, err)
	}
}

func TestAFailedStepEndsThePlan(t *testing.T) {
	exit := 1
	for name, c := range map[string]struct {
		reason   string
		result   message.ToolResult
		approval message.ApprovalState
		want     reason.Reason
	}{
		"tool":       {"the tool says that it failed", message.ToolResult{Code: message.CodeTool, Text: "boom"}, "", reason.ToolError},
		"exit code":  {"a program that fails is no success", message.ToolResult{Output: "boom", Text: "boom", ExitCode: &exit}, "", reason.ToolError},
		"denied":     {"a rule refused the call", message.ToolResult{Code: message.CodeDenied, Text: "boom"}, "", reason.Denied},
		"rejected":   {"a person refused the call", message.ToolResult{Code: message.CodeRejected, Text: "boom"}, message.Rejected, reason.Denied},
		"unanswered": {"no person was there", message.ToolResult{Code: message.CodeDenied, Text: "boom"}, message.Unanswered, reason.ApprovalRequired},
		"unknown":    {"what may have happened is not repeated", message.ToolResult{Code: message.CodeUnknown, Text: "boom"}, "", reason.ToolError},
	} {
		plan := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{step("first", "x", `{}`), step("second", "x", `{}`)}}
		for _, policy := range []v1alpha1.StepErrorPolicy{"", v1alpha1.StepStop, v1alpha1.StepContinue} {
			plan.Steps[0].OnError = policy
			conversation := begin(t, plan, `{}`)
			out, err := conversation.Next(t.Context(), message.Request{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			m := modeltest.ToMessage(out, "plan", &c.result)
			m.Calls()[0].Approval = c.approval
			if err := conversation.Append(m); err != nil {
				t.Fatal(err)
			}
			out, err = conversation.Next(t.Context(), message.Request{}, quiet)
			if policy == v1alpha1.StepContinue {
				if err != nil || len(out.Calls) != 1 {
					t.Errorf("%s, Continue: %+v, %v", name, out, err)
				}
				continue
			}
			if reason.Of(err) != c.want || !strings.Contains(fmt.Sprint(err), `step "first"`) || !strings.Contains(fmt.Sprint(err), "boom") {
				t.Errorf("%s: %v, want %s: %s", name, err, c.want, c.reason)
			}
		}
	}
}

// A resume appends what is recorded, behind whatever step the run was interrupted.
func TestAResumeRepeatsNoStep(t *testing.T) {
	plan := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{
		step("a", "read", `{"path":"${inputs.file}"}`),
		step("skipped", "x", `{}`, when("false")),
		step("b", "grep", `{"text":"${item}"}`, each("steps.a.output.split('f')")),
		step("c", "write", `{"text":"${steps.b.items.map(i, i.output)} ${steps.skipped.ran}"}`),
	}, Output: "${steps.c.output}"}
	all, output, history, err := play(t, begin(t, plan, `{"file":"f"}`), echo)
	if err != nil || len(history) != 3 {
		t.Fatalf("%d messages, %v", len(history), err)
	}
	for stop := range len(history) + 1 {
		c, done := begin(t, plan, `{"file":"f"}`), 0
		if err := c.Append(&message.Message{Role: message.RoleUser}); err != nil {
			t.Fatal(err)
		}
		void := *history[0]
		void.Error = message.Void
		for _, m := range append([]*message.Message{&void}, history[:stop]...) {
			if err := c.Append(m); err != nil {
				t.Fatal(err)
			}
			if m != &void {
				done += len(m.Calls())
			}
		}
		rest, got, _, err := play(t, c, echo)
		if d := cmp.Diff(all[done:], rest); d != "" && len(rest)+len(all[done:]) > 0 || got != output || err != nil {
			t.Errorf("resumed after %d answers: %q, %v (-want +got)\n%s", stop, got, err, d)
		}
	}
	other := begin(t, plan, `{"file":"ffffff"}`) // its forEach has other items than were recorded
	if err := errors.Join(other.Append(history[0])); err != nil {
		t.Fatal(err)
	}
	short := *history[1]
	short.Parts = short.Parts[:2]
	if err := other.Append(&short); reason.Of(err) != reason.Internal {
		t.Errorf("a message with too few calls: %v", err)
	}
}

// listOf is an input with so many items.
func listOf(n int) string { return `{"l":[0` + strings.Repeat(",0", n-1) + `]}` }

func TestLimits(t *testing.T) {
	long := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{
		step("a", "x", `{}`), step("b", "y", `{"v":"${item}"}`, each("inputs.l")),
	}}
	if calls, _, _, err := play(t, begin(t, long, listOf(MaxItems)), echo); err != nil || len(calls) != 1+MaxItems {
		t.Errorf("as many items as may be: %d calls, %v", len(calls), err)
	}
	for name, c := range map[string]struct {
		reason, args, when, forEach, inputs, want string
	}{
		"items":       {"a list is bounded", `{}`, "", "lists.range(129)", `{}`, `step "b": spec.plan.steps[1].forEach: lists.range(129): the list has 129 items, at most 128 are allowed`},
		"no list":     {"only a list has items", `{}`, "", "inputs.n", `{"n":1}`, "the value is not a list"},
		"no input":    {"an input that is missing is not empty", `{}`, "inputs.nope == 1", "", `{}`, `step "b": spec.plan.steps[1].when: inputs.nope == 1`},
		"not bool":    {"a condition is true or false", `{}`, "inputs.n", "", `{"n":1}`, "not bool"},
		"arguments":   {"the place is named", `{"a":[{"b":"${1 / int(inputs.n)}"}]}`, "", "", `{"n":0}`, "spec.plan.steps[1].args.a[0].b: ${1 / int(inputs.n)}"},
		"item":        {"the item is named", `{"a":"${1 / int(item)}"}`, "", "[1, 0]", `{}`, "item 1: spec.plan.steps[1].args.a"},
		"cost":        {"an evaluation is bounded", `{}`, "inputs.l.exists(i, inputs.l.exists(k, i == k + 1))", "", listOf(5000), "more than 100000"},
		"one text":    {"a value is bounded", `{"a":"${lists.range(900).map(i, inputs.s)}"}`, "", "", `{"s":"` + strings.Repeat("x", 2000) + `"}`, "more than 1024 KiB"},
		"many texts":  {"all arguments are bounded", `{"a":["` + strings.Repeat(`${inputs.s}","`, 30) + `"]}`, "", "", `{"s":"` + strings.Repeat("x", 50_000) + `"}`, "the arguments would have more than 1024 KiB"},
		"early steps": {"results of later steps are not there, however they are named", `{"a":"${[steps].map(s, s.c.output)}"}`, "", "", `{}`, "no such key"},
	} {
		plan := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{step("a", "x", `{}`), step("b", "x", c.args, when(c.when), each(c.forEach)), step("c", "x", `{}`)}}
		calls, _, _, err := play(t, begin(t, plan, c.inputs), echo)
		if reason.Of(err) != reason.ToolError || !strings.Contains(fmt.Sprint(err), c.want) || len(calls) != 1 {
			t.Errorf("%s: %d calls, %v; want %q: %s", name, len(calls), err, c.want, c.reason)
		}
	}
	c := begin(t, long, listOf(2))
	c.MaxSteps = 1
	if calls, _, _, err := play(t, c, echo); reason.Of(err) != reason.MaxSteps || len(calls) != 1 {
		t.Errorf("a second step: %d calls, %v", len(calls), err)
	}
	c = begin(t, long, listOf(2))
	c.MaxSteps = 2
	if calls, _, _, err := play(t, c, echo); err != nil || len(calls) != 3 {
		t.Errorf("as many steps as may be: %d calls, %v", len(calls), err)
	}
}

func TestCheckFindsEveryMistake(t *testing.T) {
	plan := &v1alpha1.SkillPlan{
		Inputs: &v1alpha1.InputContract{Schema: v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}},
		Steps: []v1alpha1.SkillStep{
			step("a", "x", `{"v":"${steps.b.output}"}`, when("steps.a.ran")),
			step("b", "x", `{"v":["${item}"],"w":"${inputs.m}"}`, when("inputs.n")),
			step("c", "x", `["x"]`, each("inputs.n")),
			step("d", "x", `{"v":"${index + 1} ${steps.e.items}"}`, each("steps.d.items")),
			step("e", "read", `{"v":"${steps.read.output} ${steps.c.output}"}`),
			step("", "read", `{"v":"${steps.a.outptu}"}`),
			step("", "read", `{}`),
		},
		Output: "${steps.nope.output}",
	}
	var got []string
	for _, p := range Check(plan) {
		got = append(got, p.String())
	}
	for i, want := range []string{
		`spec.plan.steps[0].when: step "a" reads its own result`,
		`spec.plan.steps[0].args.v: step "a" reads the result of step "b", which comes later`,
		`spec.plan.steps[1].when: a condition must be of type bool`,
		`spec.plan.steps[1].args.v[0]: ${item}: `,
		`spec.plan.steps[1].args.w: ${inputs.m}: `,
		`spec.plan.steps[2].forEach: must be a list, this is int`,
		`spec.plan.steps[2].args: must be an object`,
		`spec.plan.steps[3].forEach: step "d" reads its own result`,
		`spec.plan.steps[3].args.v: `,                       // a step without forEach has no items
		`spec.plan.steps[4].args.v: ${steps.read.output}: `, // two steps are called read
		`spec.plan.steps[4].args.v: ${steps.c.output}: `,    // one with forEach has items
		`spec.plan.steps[5].args.v: ${steps.a.outptu}: `,
		`spec.plan.output: ${steps.nope.output}: `,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("mistake %d: want %q, got:\n%s", i, want, strings.Join(got, "\n"))
		}
	}
	if len(got) != 13 {
		t.Errorf("%d mistakes:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// What cannot be the id of a call of the plan asks, where any step does.
func TestApprovalsAreDemandedByStep(t *testing.T) {
	plan := &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{step("a", "x", `{}`), step("b", "x", `{}`, asks), step("c", "x", `{}`)}}
	demand := Demand("s", plan)
	for id, want := range map[string]bool{
		callID(0, 0): false, callID(1, 0): true, callID(1, 127): true, callID(2, 0): false,
		"": true, "call_4_1": true, "call_0_1": true, "call_-1_1": true, "call_1": true, "call_x_1": true, "other": true,
	} {
		if got := demand(message.ToolCall{ID: id}) != ""; got != want {
			t.Errorf("%q: asks %v, want %v", id, got, want)
		}
	}
	plan.Steps[1].Approval = false
	if Demand("s", plan) != nil {
		t.Error("a plan without approvals demands one")
	}
}

func TestADescriptionHasEveryStep(t *testing.T) {
	text := Describe(&v1alpha1.SkillPlan{
		Steps:  []v1alpha1.SkillStep{step("", "read", `{"path":"<a>"}`), step("b", "write", `{}`, asks, when("steps.read.output != ''"))},
		Output: "done",
	})
	for _, want := range []string{
		`{"name":"read","tool":"read","args":{"path":"<a>"}}` + "\n",
		`{"name":"b","tool":"write","args":{},"when":"steps.read.output != ''","approval":true}` + "\n",
		"Then answer with: done\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestAStoppedRunStopsThePlan(t *testing.T) {
	c := begin(t, &v1alpha1.SkillPlan{Steps: []v1alpha1.SkillStep{step("a", "x", `{}`)}}, `{}`)
	stop := errors.New("stop")
	if _, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("what emit returns: %v", err)
	}
	out, err := c.Next(t.Context(), message.Request{NoTools: true}, quiet)
	if err != nil || len(out.Calls) != 0 {
		t.Errorf("a request without tools: %+v, %v", out, err)
	}
}

func TestInputsAreReadAsDeepAsTheyGo(t *testing.T) {
	p := &v1alpha1.SkillPlan{
		Inputs: &v1alpha1.InputContract{Schema: v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`)}},
		Steps:  []v1alpha1.SkillStep{step("", "bash", `{"command":"${inputs.a.b}"}`)},
	}
	if problems := Check(p); len(problems) > 0 {
		t.Fatalf("an input inside an input cannot be read: %v", problems)
	}
	p.Steps[0].Args.Raw = []byte(`{"command":"${inputs.a.c}"}`)
	if problems := Check(p); len(problems) != 1 || !strings.Contains(problems[0].Message, "inputs.a has no field c") {
		t.Errorf("a misspelt one is not found: %v", problems)
	}
}
