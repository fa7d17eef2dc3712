package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// policyOf is a manifest of a policy named p.
func policyOf(spec string) string {
	return "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n" + indent(spec)
}

// TestConformanceHowPermissionStringsFail runs each way in which rules of another
// runner, written as its documentation showed, were found to be no boundary. The
// calls are made by a model and judged by the whole engine: a call that must be
// denied also where everything is approved beforehand, one that must be asked
// about where nobody answers. None of them may have an effect.
func TestConformanceHowPermissionStringsFail(t *testing.T) {
	list := func(entries ...string) string { return "permissions:\n- " + strings.Join(entries, "\n- ") }
	const (
		denyRF   = "{permission: bash, pattern: 'rm*-rf*', action: deny}"
		denySudo = "{permission: bash, pattern: 'sudo*', action: deny}"
		allowLs  = "{permission: bash, pattern: 'ls*', action: allow}"
	)
	outside := t.TempDir()
	safe := filepath.Join(outside, "safe")
	bashCall := func(script string) string { return fmt.Sprintf("{tool: bash, args: {command: %q}}", script) }
	tests := map[string]struct {
		reason, policy, call string
		want                 message.Action
		rule                 string
	}{
		"a star stops at no slash":     {"an older version missed the path", list(denyRF), bashCall("rm -rf " + outside + "/keep"), message.Deny, "p/permissions"},
		"letters in another order":     {"flags are a set", list(denyRF), bashCall("rm -fr keep"), message.Deny, "p/permissions"},
		"letters apart":                {"flags are a set", list(denyRF), bashCall("rm -r -f keep"), message.Deny, "p/permissions"},
		"a wrapper":                    {"wrappers are looked through", list(denySudo), bashCall("env sudo id"), message.Deny, "p/permissions"},
		"the second command":           {"each command of a list is judged", list(denySudo), bashCall("cd /; sudo id"), message.Deny, "p/permissions"},
		"both conditions":              {"the second one overwrote the first", "rules:\n- {name: both, match: {builtins: [bash]}, when: \"cmd.commands.exists(c, c.name.startsWith('rm') && c.argv.exists(a, a == '-rf'))\", action: deny}", bashCall("ls -rf"), message.Ask, "default/byRisk"},
		"the first command is allowed": {"each command of a list is judged", list(allowLs), bashCall("ls; rm -rf keep"), message.Ask, "default/byRisk"},
		"a longer name":                {"the first word is the whole name of the program", list(allowLs), bashCall("lsof"), message.Ask, "default/byRisk"},
		"dots behind a safe folder": {
			"an allow holds for where the path leads", list("{permission: write, pattern: '"+safe+"/*', action: allow}", "{permission: external_directory, pattern: '"+safe+"/*', action: allow}"),
			fmt.Sprintf("{tool: write, args: {path: %q, content: x}}", safe+"/../../"+filepath.Base(outside)+"/authorized_keys"), message.Ask, "default/byRisk",
		},
		"dots before a denied folder": {"a deny holds for where the path leads", list("{permission: read, pattern: '/etc/*', action: deny}"), "{tool: read, args: {path: /tmp/../etc/passwd}}", message.Deny, "p/permissions"},
		"a pattern set that is empty": {"what comes after -- is no pattern, and what is not found is not allowed", list("{permission: bash, pattern: 'git status *', action: allow}"), bashCall("git log -- x"), message.Ask, "default/byRisk"},
		"an assignment alone":         {"what is not found is not allowed", list("{permission: bash, pattern: '*', action: allow}"), bashCall("x=1"), message.Ask, "p/permissions"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, agent("tools: [{name: bash}, {name: read}, {name: write}]\npolicyRefs: [{name: p}]", "- calls: ["+tc.call+"]\n- say: done\n", policyOf(tc.policy)), map[string]string{"keep/me": "x"})
			out := p.run(t, func(o *RunOptions) {
				if tc.want == message.Deny {
					o.Approve = "all,R3" // read first, it would skip the deny
				}
			})
			want(t, out, reason.Denied)
			c := call(t, out, 0)
			if c.Decision == nil || *c.Decision != string(tc.want) || c.Rule == nil || *c.Rule != tc.rule || c.State != string(message.StateError) {
				t.Errorf("%s: got %s", tc.reason, encoded(t, c))
			}
			if r := out.Run.Call(c.ID).Result; r.Code != message.CodeDenied {
				t.Errorf("got %+v", r)
			}
			if n := len(out.Result().ChangedFiles); n != 0 {
				t.Errorf("%d files have changed", n)
			}
			if left, _ := os.ReadDir(outside); len(left) > 0 {
				t.Errorf("%v came to be outside", left)
			}
		})
	}
}

func encoded(t *testing.T, c view.CallResult) string {
	t.Helper()
	return fmt.Sprintf("decision %v, rule %v, state %s, %s", deref(c.Decision), deref(c.Rule), c.State, c.Args)
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// payer is a tool that writes down what it is asked to pay.
const payer = "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: pay}\nspec:\n  description: Pays.\n  risk: R2\n  effects: [Money]\n  workspaceAccess: ReadWrite\n" +
	"  parameters: {type: object, required: [amount], properties: {amount: {type: integer}, note: {type: string}}}\n  source: {exec: {command: [tee, -a, paid]}}\n"

// TestAnApprovalIsForTheArgumentsThatWereShown: a journal is written anew, chain and
// all, in which the approved call is another one. The approval does not count.
func TestAnApprovalIsForTheArgumentsThatWereShown(t *testing.T) {
	forge := map[string]struct {
		reason string
		change func(event.Event) event.Event
		ran    bool
	}{
		"nothing": {"the journal as it was", func(e event.Event) event.Event { return e }, true},
		"the call": {"999 is executed on the yes for 100", func(e event.Event) event.Event {
			if d, ok := e.Data.(event.ToolInputEnd); ok {
				d.Raw, d.Input = `{"amount":999}`, []byte(`{"amount":999}`)
				e.Data = d
			}
			return e
		}, false},
		"call and question": {"the question is forged to fit, its hash is not", func(e event.Event) event.Event {
			switch d := e.Data.(type) {
			case event.ToolInputEnd:
				d.Raw, d.Input = `{"amount":999}`, []byte(`{"amount":999}`)
				e.Data = d
			case event.ApprovalRequested:
				d.Args = []byte(`{"amount":999}`)
				e.Data = d
			}
			return e
		}, false},
		"the rule": {"the yes was for another rule's question", func(e event.Event) event.Event {
			if d, ok := e.Data.(event.PolicyDecision); ok {
				d.Rule = "p/other"
				e.Data = d
			}
			return e
		}, false},
	}
	for name, tc := range forge {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, agent("tools: [{name: pay}]\napprovals: {onAsk: Suspend}\npolicyRefs: [{name: p}]", "- calls: [{tool: pay, args: {amount: 100}}]\n- say: done\n", payer, policyOf("rules: [{name: ask, action: ask}]")), nil)
			out := p.run(t)
			if out.Run.Phase != view.Suspended {
				t.Fatalf("got %+v", out.Run.Finished)
			}
			p.forge(t, out, tc.change, event.ApprovalDecided{Answer: message.Answer{State: message.Approved, By: "jane", Scope: message.Once}})
			out = p.goOn(t)
			c := out.Run.Call(call(t, out, 0).ID)
			ran := c.State == message.StateCompleted
			if ran != tc.ran || ran == (out.Run.Phase == view.Suspended) {
				t.Errorf("%s: the call is %s, the run %s", tc.reason, c.State, out.Run.Phase)
			}
			paid, _ := os.ReadFile(filepath.Join(out.Run.Started.Workspace.Dir, "paid"))
			if want := map[bool]string{true: `{"amount":100}`, false: ""}[tc.ran]; strings.TrimSpace(string(paid)) != want {
				t.Errorf("%s: paid %q, want %q", tc.reason, paid, want)
			}
		})
	}
}

// forge writes a run's journal anew with changed events and one more about its
// first call, so that its chain is sound.
func (p place) forge(t *testing.T, out *Outcome, change func(event.Event) event.Event, last event.Payload) {
	t.Helper()
	var all []event.Event
	asked := event.Event{}
	for _, e := range told(t, out) {
		if _, ok := e.Data.(event.ApprovalRequested); ok {
			asked = e
		}
		if _, ok := e.Data.(event.RunFinished); !ok { // it is as if the process had died before
			all = append(all, change(e))
		}
	}
	p.write(t, out, append(all, event.Event{Message: asked.Message, Part: asked.Part, Call: asked.Call, Data: last}))
}

// told are the events of a run.
func told(t *testing.T, out *Outcome) []event.Event {
	t.Helper()
	var all []event.Event
	for e, err := range journal.Read(t.Context(), out.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// write makes some events the whole journal of a run.
func (p place) write(t *testing.T, out *Outcome, all []event.Event) {
	t.Helper()
	days, err := filepath.Glob(filepath.Join(out.Journal, "events-*.jsonl"))
	if err != nil || len(days) == 0 {
		t.Fatalf("got %v, %v", days, err)
	}
	for _, f := range append(days, filepath.Join(out.Journal, "head.json")) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	w, err := journal.Create(t.Context(), journal.Options{Dir: out.Journal, Run: out.Run.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if _, err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
