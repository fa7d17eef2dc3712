package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/decisions"
	"agentctl.dev/agentctl/runner/journal"
)

// counter is a tool without an effect, whose arguments have every shape.
const counter = "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: count}\nspec:\n  description: Counts.\n  risk: R0\n" +
	"  parameters: {type: object, properties: {list: {type: array, items: {type: integer}}, n: {type: integer}, text: {type: string}, map: {type: object, additionalProperties: {type: string}}, deep: {}}}\n" +
	"  source: {exec: {command: [\"true\"]}}\n"

// TestARuleThatCannotBeJudgedDeniesByItsName whatever it would say, and whatever
// other rules and the command line say.
func TestARuleThatCannotBeJudgedDeniesByItsName(t *testing.T) {
	tests := map[string]struct{ reason, when, args, says string }{
		"a million steps":        {"it costs too much", "call.args.list.all(x, x > 0)", "{list: [" + strings.TrimSuffix(strings.Repeat("1,", 120_000), ",") + "]}", "costs more than"},
		"loops in loops":         {"it costs too much", "call.args.list.exists(a, call.args.list.exists(b, a + b == 0))", "{list: [" + strings.TrimSuffix(strings.Repeat("1,", 2_000), ",") + "]}", "costs more than"},
		"overflow by +":          {"integers are 64 bits wide", "call.args.n + 9223372036854775807 > 0", "{n: 1}", "overflow"},
		"overflow by *":          {"integers are 64 bits wide", "call.args.n * 9223372036854775807 > 0", "{n: 2}", "overflow"},
		"overflow by -":          {"integers are 64 bits wide", "-9223372036854775807 - call.args.n < 0", "{n: 2}", "overflow"},
		"overflow of a text":     {"", "int(call.args.text) > 0", "{text: '99999999999999999999'}", "conversion"},
		"overflow of uint":       {"", "uint(call.args.n) > 0u", "{n: -1}", "overflow"},
		"division by zero":       {"", "10 / call.args.n > 1", "{n: 0}", "division by zero"},
		"modulus by zero":        {"", "10 % call.args.n > 1", "{n: 0}", "modulus by zero"},
		"missing argument":       {"it is optional, and not there", "call.args.n > 1", "{}", "no such key"},
		"missing key":            {"of a map", "call.args.map['x'] == ''", "{map: {y: z}}", "no such key"},
		"missing optional":       {"of an optional", "call.args.?n.value() > 1", "{}", "optional.none()"},
		"missing element":        {"", "call.args.list[5] > 1", "{list: [1]}", "index out of bounds"},
		"a pattern that is none": {"that came with the call", "'x'.matches(call.args.text)", "{text: '(((('}", "error parsing regexp"},
		"a pattern that is huge": {"that came with the call", "'x'.matches(call.args.text)", "{text: '((((a{1000}){1000}){1000}){1000})'}", "error parsing regexp"},
		"another type":           {"of an argument without one", "call.args.deep > 3", "{deep: {a: 1}}", "no such overload"},
		"a time that is none":    {"that came with the call", "timestamp(call.args.text) < now", "{text: soon}", "timestamp"},
		"a character outside":    {"", "call.args.text.charAt(100) == 'x'", "{text: abc}", "index out of range"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := fmt.Sprintf("rules:\n- {name: sound, action: allow, match: {risks: [R0]}}\n- {name: bad-one, match: {tools: [count]}, action: allow, when: %q}\n", tc.when)
			p := newPlace(t, agent("tools: [{name: count}]\npolicyRefs: [{name: p}]", "- calls: [{tool: count, args: "+tc.args+"}]\n- say: done\n", counter, policyOf(rules)), nil)
			out := p.run(t, func(o *RunOptions) { o.Approve = "all,R3" })
			want(t, out, reason.Denied)
			c := out.Run.Call(call(t, out, 0).ID)
			if c.Decision.Action != message.Deny || c.Decision.Rule != "p/bad-one" || c.State != message.StateError || c.Result.Code != message.CodeDenied {
				t.Fatalf("%s: got %+v, %+v", tc.reason, c.Decision, c.Result)
			}
			if !strings.Contains(c.Result.Text, "p/bad-one") || !strings.Contains(c.Decision.Message, tc.says) {
				t.Errorf("%s: the model reads %q, want the rule and %q", tc.reason, c.Result.Text, tc.says)
			}
		})
	}
}

// TestArgumentsWithoutAnEndAreNoHarm: what nests deeper than anybody reads is
// refused or judged, and never a crash.
func TestArgumentsWithoutAnEndAreNoHarm(t *testing.T) {
	for _, depth := range []int{60, 2_000} {
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		rules := "rules:\n- {name: deep, match: {tools: [count]}, action: deny, when: \"has(call.args.deep) && call.args.deep == [[1]]\"}\n"
		p := newPlace(t, agent("tools: [{name: count}]\npolicyRefs: [{name: p}]", "- calls: [{tool: count, args: {text: x}}]\n- say: done\n", counter, policyOf(rules)), nil)
		out := p.run(t)
		want(t, out, reason.Completed)
		a, err := decisions.CanI(t.Context(), decisions.AccessOptions{Paths: []string{p.manifests}, Tool: "count", Args: []byte(`{"deep":` + deep + `}`)})
		if err == nil && a.Decision == "" {
			t.Errorf("depth %d: no decision", depth)
		}
	}
}

// TestAPolicyThatDoesNotEnforceIsWrittenDown: Warn is a warning of the run, Audit
// stands in the facts of the decision, and neither decides.
func TestAPolicyThatDoesNotEnforceIsWrittenDown(t *testing.T) {
	other := func(name, mode string) string {
		return strings.Replace(policyOf("mode: "+mode+"\ndefault: deny\nrules: [{name: not, match: {tools: [write]}, action: deny}, {name: ask, match: {tools: [read]}, action: ask}]"), "name: p}", "name: "+name+"}", 1)
	}
	p := newPlace(t, agent("tools: [{name: read}, {name: write}]\npolicyRefs: [{name: warns}, {name: audits}]", `
- calls: [{tool: write, args: {path: f, content: x}}]
- calls: [{tool: read, args: {path: f}}]
- say: done
`, other("warns", "Warn"), other("audits", "Audit")), nil)
	out := p.run(t)
	want(t, out, reason.Completed)
	for i, says := range []string{"/not would deny", "/ask would ask"} {
		c := out.Run.Call(call(t, out, i).ID)
		if c.State != message.StateCompleted || c.Decision.Action != message.Allow || c.Decision.Rule != "default/byRisk" {
			t.Errorf("got %s, %+v", c.State, c.Decision)
		}
		if !strings.Contains(string(c.Decision.Facts), "audits"+says) || strings.Contains(string(c.Decision.Facts), "warns") {
			t.Errorf("the facts are %s", c.Decision.Facts)
		}
		if !slices.ContainsFunc(out.Run.Warnings, func(w string) bool { return strings.HasPrefix(w, "warns"+says) }) {
			t.Errorf("the warnings are %q", out.Run.Warnings)
		}
	}
	decisions, warnings := 0, 0
	for e, err := range journal.Read(t.Context(), out.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.PolicyDecision:
			decisions++
		case event.Warning:
			if strings.Contains(d.Message, " would ") {
				if warnings++; e.Call == "" {
					t.Error("a warning about a call does not name it")
				}
			}
		}
	}
	if decisions != 2 || warnings != 2 {
		t.Errorf("%d decisions and %d warnings are in the journal, want 2 and 2", decisions, warnings)
	}
}

// TestWhatCannotBeUndoneIsApprovedByNameAlone: --approve all leaves R3 alone, all,R3
// answers it, a deny stands against both, and nothing is remembered of an R3 call.
func TestWhatCannotBeUndoneIsApprovedByNameAlone(t *testing.T) {
	final := strings.Replace(payer, "risk: R2", "risk: R3", 1)
	steps := "- calls: [{tool: pay, args: {amount: 1}}]\n- calls: [{tool: pay, args: {amount: 2, note: never}}]\n- calls: [{tool: pay, args: {amount: 1}}]\n- say: done\n"
	rules := policyOf("rules:\n- {name: never, match: {tools: [pay]}, when: \"has(call.args.note)\", action: deny}\n- {name: allow, action: allow}\npermissions: [{permission: '*', action: allow}]\ndefault: allow")
	for approve, paid := range map[string]string{"never": "", "all": "", "all,R3": `{"amount":1}{"amount":1}`} {
		t.Run(approve, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: pay}]\npolicyRefs: [{name: p}]", steps, final, rules), nil)
			out := p.run(t, func(o *RunOptions) { o.Approve = approve })
			if paid == "" {
				want(t, out, reason.Denied) // not one call ran
			} else {
				want(t, out, reason.Completed)
			}
			got, _ := os.ReadFile(filepath.Join(out.Run.Started.Workspace.Dir, "paid"))
			if strings.ReplaceAll(string(got), "\n", "") != paid {
				t.Errorf("paid %q, want %q", got, paid)
			}
			for i, action := range []message.Action{message.Ask, message.Deny, message.Ask} {
				c := out.Run.Call(call(t, out, i).ID)
				if c.Decision.Action != action || len(c.Decision.Always) > 0 {
					t.Errorf("call %d: got %+v", i, c.Decision)
				}
			}
			if len(out.Run.Remembered) > 0 {
				t.Errorf("remembered %+v", out.Run.Remembered)
			}
		})
	}
}

// TestAToolThatNoCallCouldBeAllowedForIsNotOffered, and a model that calls it all the
// same is told so by the rule.
func TestAToolThatNoCallCouldBeAllowedForIsNotOffered(t *testing.T) {
	rules := policyOf("default: deny\nrules:\n- {name: no-shell, match: {builtins: [bash]}, action: deny}\npermissions: [{permission: read, pattern: 'src/*', action: allow}]")
	p := newPlace(t, agent("tools: [{name: read}, {name: bash}, {name: write}]\npolicyRefs: [{name: p}]", `
- calls: [{tool: bash, args: {command: "echo x > made"}}]
- calls: [{tool: write, args: {path: made, content: x}}]
- calls: [{tool: read, args: {path: src/a}}]
- say: done
`, rules), map[string]string{"src/a": "text"})
	out := p.run(t, func(o *RunOptions) { o.Approve = "all,R3" })
	want(t, out, reason.Completed)
	for i, rule := range []string{"p/no-shell", "p/default", "p/permissions"} {
		c := out.Run.Call(call(t, out, i).ID)
		if c.Decision == nil || c.Decision.Rule != rule || (c.State == message.StateCompleted) != (i == 2) {
			t.Errorf("call %d: %s, %+v", i, c.State, c.Decision)
		}
	}
	if n := len(out.Result().ChangedFiles); n > 0 {
		t.Errorf("%d files have changed", n)
	}
}

// TestWhatARuleTakesAwayTheModelNeverReads: out of results in JSON, in text around
// it, in JSON inside of it, longer than is shown, of a call that was interrupted,
// and when the run is taken up again.
func TestWhatARuleTakesAwayTheModelNeverReads(t *testing.T) {
	tests := map[string]string{
		"json":              `{"a":[{"pin":"S3CRET-77"}],"pin":"S3CRET-77","x":{"pin":["S3CRET-77"]}}`,
		"lines of json":     "{\"pin\":\"S3CRET-77\"}\n{\"b\":{\"pin\":\"S3CRET-77\"}}\n",
		"a line before":     "log: 1\n{\"pin\": \"S3CRET-77\"}\n",
		"an escaped name":   `{"p\u0069n":"S3CRET-77"}`,
		"escaped in text":   `log: {"p\u0069n": "S3CRET-77"}`,
		"json in json":      `{"body":"{\"pin\":\"S3CRET-77\"}"}`,
		"text in json":      `{"line":"got {\"pin\": \"S3CRET-77\"} from x"}`,
		"deeper":            `{"a":"{\"b\":\"{\\\"pin\\\":\\\"S3CRET-77\\\"}\"}"}`,
		"a number":          `{"pin": 77, "text": "no S3CRET"}`,
		"cut":               `{"pin":"S3CRET-77","x":"` + strings.Repeat("y", 9000) + `"}`,
		"text, cut":         "log\n" + strings.Repeat("y\n", 4000) + "{\"pin\": \"S3CRET-77\"}\n",
		"a known form":      "token=" + "ghp_" + strings.Repeat("S3CRET77", 5),
		"spaces":            "{ \"pin\"  :\n\t\"S3CRET-77\" }",
		"an object in text": "log: {\"pin\": {\"v\": \"S3CRET-77\"}}",
		"a list in text":    "log: {\"pin\": [\"S3CRET-77\"]}",
	}
	rules := policyOf("rules:\n- {name: pins, 'on': Result, action: redact, redact: {fields: [pin], secrets: true}}\n- {name: ok, action: allow}")
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, agent("tools: [{name: bash}, {name: read}]\npolicyRefs: [{name: p}]", `
- calls: [{tool: bash, args: {command: cat f}}]
- calls: [{tool: read, args: {path: f}}]
- say: "saw ${last.output}"
`, rules), map[string]string{"f": text})
			out := p.run(t)
			want(t, out, reason.Completed)
			hidden := func(out *Outcome) {
				t.Helper()
				seen := out.Run.Finished.Output
				for _, c := range out.Result().ToolCalls {
					r := out.Run.Call(c.ID).Result
					if r == nil {
						t.Fatalf("call %s has no result", c.ID)
					}
					seen += r.Text + r.Output + r.Title + string(r.Metadata)
					if r.Blob != "" {
						t.Errorf("the whole result is told as blob %s", r.Blob)
					}
				}
				if strings.Contains(seen, "S3CRET-77") || strings.Contains(seen, "S3CRET77") || strings.Contains(seen, ": 77") {
					t.Errorf("the model reads\n%.2000s", seen)
				}
			}
			hidden(out)
			// The process dies after the first call has said all of it.
			var all []event.Event
			for _, e := range told(t, out) {
				all = append(all, e)
				if _, ran := e.Data.(event.ToolCall); ran {
					e.Data = event.ToolProgress{Text: text}
					all = append(all, e)
					break
				}
			}
			p.write(t, out, all)
			out = p.goOn(t)
			if r := out.Run.Call(call(t, out, 0).ID).Result; r == nil || r.Code != message.CodeUnknown || !strings.Contains(r.Text, "so far") {
				t.Errorf("got %+v", r)
			}
			hidden(out)
		})
	}
}

// TestACallThatARuleHasChangedRunsChanged also when it is judged once more right
// before it runs: beside another call, after a person was asked, and after a crash.
func TestACallThatARuleHasChangedRunsChanged(t *testing.T) {
	tool := strings.Replace(payer, "risk: R2", "risk: R2\n  retry: Idempotent", 1)
	const rules = "rules:\n- {name: hide, match: {tools: [pay]}, action: redact, redact: {fields: [note]}}\n"
	const one = "{tool: pay, args: {amount: 1, note: secret}}"
	for name, tc := range map[string]struct{ policy, calls, approve, paid string }{
		"beside another": {rules, one + ", " + one, "never", `{"amount":1,"note":"[redacted]"}{"amount":1,"note":"[redacted]"}`},
		"approved":       {rules + "- {name: ask, action: ask}\n", one, "all", `{"amount":1,"note":"[redacted]"}`},
		"by all means":   {rules + "- {name: ask, match: {tools: [pay]}, when: call.args.amount == 2, action: ask}\n", one + ", {tool: pay, args: {amount: 2, note: secret}}", "never", `{"amount":1,"note":"[redacted]"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, agent("tools: [{name: pay}]\npolicyRefs: [{name: p}]", "- calls: ["+tc.calls+"]\n- say: done\n", tool, policyOf(tc.policy)), nil)
			out := p.run(t, func(o *RunOptions) { o.Approve = tc.approve })
			want(t, out, reason.Completed)
			paid := func() string {
				b, _ := os.ReadFile(filepath.Join(out.Run.Started.Workspace.Dir, "paid"))
				return strings.ReplaceAll(string(b), "\n", "")
			}
			if paid() != tc.paid {
				c := out.Run.Call(call(t, out, 0).ID)
				t.Fatalf("paid %q, want %q (%s: %+v)", paid(), tc.paid, c.State, c.Result)
			}
			if tc.approve != "never" || tc.calls == one+", "+one {
				return
			}
			// The process dies while the first call runs; it may be repeated.
			var all []event.Event
			for _, e := range told(t, out) {
				all = append(all, e)
				if _, ran := e.Data.(event.ToolCall); ran {
					break
				}
			}
			p.write(t, out, all)
			out = p.goOn(t)
			if c := out.Run.Call(call(t, out, 0).ID); c.State != message.StateCompleted || c.Result.Output != tc.paid {
				t.Errorf("after a crash: %s, %+v, want %s", c.State, c.Result, tc.paid)
			}
		})
	}
}
