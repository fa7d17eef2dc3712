package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/replay"
)

// taped is a place whose run was recorded.
func taped(t *testing.T, spec, steps string, more ...string) (p place, file string) {
	t.Helper()
	p = newPlace(t, agent(spec, steps, more...), map[string]string{"a.txt": "one\n"})
	file = filepath.Join(t.TempDir(), "fix.jsonl")
	want(t, p.run(t, func(o *RunOptions) { o.Record, o.Inputs = file, map[string]string{"who": "Jane"} }), reason.Completed)
	return p, file
}

const (
	driftSpec = `
instructions: Greet ${inputs.who}.
inputs: {schema: {type: object, properties: {who: {type: string}}}}
output: {schema: {type: object}}
tools: [{name: look}, {name: list}]
policyRefs: [{name: p}]
limits: {maxSteps: 9}
`
	driftTool = `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: look}
spec:
  description: Looks.
  parameters: {type: object, properties: {at: {type: string}}}
  source: {exec: {command: ["/bin/cat"]}}
`
	driftSteps = "- calls: [{tool: look, args: {at: x}}]\n- say: \"{}\"\n"
)

func TestDriftIsNamed(t *testing.T) {
	manifests := []string{driftTool, policyOf("rules: [{name: all, action: allow}]")}
	p, file := taped(t, driftSpec, driftSteps, manifests...)
	for name, c := range map[string]struct {
		reason   string
		old, new string
		want     string // "" is none
		note     string
	}{
		"nothing":           {"the same manifests are the same run", "Greet", "Greet", "", ""},
		"another model":     {"the answers are known, whoever would give them now", "provider: scripted", "contextWindow: 100\n  provider: scripted", "", "the model differs from the recorded one; the recorded answers stay"},
		"risk":              {"what a decision depends on is no drift, and no silence either", "  source: {exec:", "  risk: R0\n  source: {exec:", "", "tool look is declared otherwise than the recorded one; its recorded decisions and results stay"},
		"another folder":    {"a program beside its manifest is elsewhere in each clone", "/bin/cat", "/usr/bin/cat", "", ""},
		"another program":   {"it may do something else", "/bin/cat", "/bin/tac", "", "tool look is declared otherwise than the recorded one; its recorded decisions and results stay"},
		"instructions":      {"what the model is told first, with its data", "Greet ${inputs.who}", "Meet ${inputs.who}", `step 1: the instructions differ: recorded "Greet Jane.", now "Meet Jane." (fix.jsonl:`, ""},
		"description":       {"what the model is told of a tool", "Looks.", "Looks hard.", `the description of tool look differs: recorded "Looks.", now "Looks hard."`, ""},
		"parameters":        {"and what it takes", "at: {type: string}", "at: {type: integer}", `the parameters of tool look differ: recorded {"properties":{"at":{"type":"string"}},"type":"object"}`, ""},
		"order of keys":     {"a schema is what it says", "{type: object, properties: {at: {type: string}}}", "{properties: {at: {type: string}}, type: object}", "", ""},
		"new tool":          {"a tool more", "{name: list}]", "{name: list}, {name: read}]", "tool read is new: recorded nothing", ""},
		"tool gone":         {"a tool less", ", {name: list}]", "]", "tool list is gone", ""},
		"output":            {"the contract of the answer", "output: {schema: {type: object}}", "output: {schema: {type: [object, string]}}", `the output schema differs: recorded {"type":"object"}`, ""},
		"no output":         {"or none", "output: {schema: {type: object}}", "mode: All", `the output schema differs: recorded {"type":"object"}, now nothing`, ""},
		"limits":            {"a limit that ends the run elsewhere", "maxSteps: 9", "maxSteps: 1", "step 2: the request differs in whether tools are forbidden", ""},
		"limit without use": {"a limit that nothing reaches", "maxSteps: 9", "maxSteps: 8", "", ""},
		"policy":            {"the decisions stay", "action: allow", "action: deny", "", "the policies differ from the recorded ones; the recorded decisions stay"},
		"other name":        {"the only agent is the one that is meant", "name: worker", "name: waiter", "", "the agent is waiter, the recorded one was worker"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(p.manifests, "all.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), c.old) {
				t.Fatalf("%q stands nowhere in\n%s", c.old, text)
			}
			now := filepath.Join(t.TempDir(), "now.yaml")
			write(t, now, strings.ReplaceAll(string(text), c.old, c.new))
			r, err := Replay(t.Context(), ReplayOptions{File: file, Paths: []string{now}})
			if err != nil {
				t.Fatal(err)
			}
			switch d := r.Divergence; {
			case c.want == "" && d != nil, c.want != "" && d == nil:
				t.Errorf("%s: got %v, want %q", c.reason, d, c.want)
			case d != nil && !strings.Contains(d.Error(), c.want):
				t.Errorf("%s: got %v, want %q", c.reason, d, c.want)
			case d != nil && (r.ExitCode() != 7 || r.Run.Finished.Message != d.Error() || r.Journal != file):
				t.Errorf("%s: the outcome is %+v", c.reason, r.Run.Finished)
			case d == nil && r.ExitCode() != 0:
				t.Errorf("%s: exit code %d", c.reason, r.ExitCode())
			}
			if got := strings.Join(r.Notes, "; "); got != c.note {
				t.Errorf("%s: notes %q, want %q", c.reason, got, c.note)
			}
		})
	}
}

func TestManifestsThatCannotTakeThePlaceOfTheRecorded(t *testing.T) {
	p, file := taped(t, driftSpec, driftSteps, driftTool, policyOf("rules: [{name: all, action: allow}]"))
	text, err := os.ReadFile(filepath.Join(p.manifests, "all.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plugin := strings.Replace(string(text), "  parameters: {type: object, properties: {at: {type: string}}}\n  source: {exec: {command: [\"/bin/cat\"]}}\n",
		"  source: {plugin: {command: [\"/no/such/program\"]}}\n", 1)
	for name, c := range map[string]struct {
		reason, text, agent, want string
	}{
		"mistake":       {"manifests are judged", strings.Replace(string(text), "maxSteps", "maxStep", 1), "", "the manifests hold a mistake"},
		"no such agent": {"an agent that is named is there", string(text), "other", "other"},
		"missing input": {"what is filled in was given", strings.Replace(string(text), "inputs.who", "inputs.whom", 1), "", `input "whom" is not given`},
		"new plugin":    {"no program is started to be asked", strings.ReplaceAll(plugin, "look", "seek"), "", `tool "seek": only its plugin knows what it takes`},
	} {
		t.Run(name, func(t *testing.T) {
			now := filepath.Join(t.TempDir(), "now.yaml")
			write(t, now, c.text)
			_, err := Replay(t.Context(), ReplayOptions{File: file, Paths: []string{now}, Agent: c.agent})
			_, usage := errors.AsType[*reason.UsageError](err)
			_, invalid := errors.AsType[*InvalidError](err)
			if !usage && !invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
	// A plugin that was asked then is not asked now.
	now := filepath.Join(t.TempDir(), "now.yaml")
	write(t, now, plugin)
	if r, err := Replay(t.Context(), ReplayOptions{File: file, Paths: []string{now}}); err != nil || r.Divergence != nil {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestUpdateRecordsAnew(t *testing.T) {
	p, file := taped(t, driftSpec, driftSteps, driftTool, policyOf("rules: [{name: all, action: allow}]"))
	run := p.options()
	run.Paths, run.Workspace, run.AllowUnsandboxed = nil, "", true
	up, err := Update(t.Context(), UpdateOptions{File: file, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if c := up.Change; !c.Same || !c.Written || c.File != file || up.Unrecorded != nil || up.Run.Started.Prompt == "" {
		t.Errorf("the same run has changed: %+v", c)
	}
	if got := string(up.Run.Started.Inputs); got != `{"who":"Jane"}` {
		t.Errorf("the inputs are %s", got)
	}
	replaysAsItWas(t, up.Outcome, file)

	// Of manifests, with a recorded prompt that looks like one to be filled in.
	write(t, filepath.Join(p.manifests, "all.yaml"), agent(strings.Replace(driftSpec, "maxSteps: 9", "maxSteps: 3", 1), "- say: \"{\\\"a\\\": 1}\"\n", driftTool, policyOf("rules: [{name: all, action: allow}]")))
	run.Paths = []string{p.manifests}
	up, err = Update(t.Context(), UpdateOptions{File: file, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	c := up.Change
	if c.Same || !c.Written || c.Steps != (replay.Pair[int]{Recorded: 2, Now: 1}) || !strings.Contains(c.Calls, `-look {"at":"x"}: allow by p/all, completed`) || !strings.Contains(c.Output, `+{"a": 1}`) || c.Reason.Now != "Completed" {
		t.Errorf("got %+v", c)
	}
	if got := string(up.Run.Started.Inputs); got != `{"who":"Jane"}` {
		t.Errorf("the inputs are %s", got)
	}
	replaysAsItWas(t, up.Outcome, file)

	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason string
		change func(*RunOptions)
	}{
		"workspace": {"the folder is there", func(o *RunOptions) { o.Workspace = filepath.Join(p.workspace, "none") }},
		"approve":   {"approvals are words that are known", func(o *RunOptions) { o.Approve = "/no/such/file" }},
		"manifests": {"manifests are there", func(o *RunOptions) { o.Paths = []string{"/no/such/file.yaml"} }},
		"agent":     {"the agent is there", func(o *RunOptions) { o.Agent = "nobody" }},
	} {
		again := run
		if name != "manifests" && name != "agent" {
			again.Paths = nil
		}
		c.change(&again)
		if _, err := Update(t.Context(), UpdateOptions{File: file, Run: again}); err == nil {
			t.Errorf("%s: a run came about", c.reason)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the cassette has changed: %v", err)
	}
}

func TestAnUpdateKeepsWhatAttachedFilesHeld(t *testing.T) {
	p := newPlace(t, agent("", "- say: seen\n"), nil)
	image := filepath.Join(t.TempDir(), "a.png")
	write(t, image, "\x89PNG\r\n\x1a\n0000")
	file := filepath.Join(t.TempDir(), "fix.jsonl")
	p.run(t, func(o *RunOptions) { o.Record, o.Attach = file, []string{image} })
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	run := p.options()
	for _, paths := range [][]string{nil, {p.manifests}} {
		run.Paths = paths
		up, err := Update(t.Context(), UpdateOptions{File: file, Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if f := up.Run.Started.Files; len(f) != 1 || f[0].Filename != "a.png" || !up.Change.Same {
			t.Errorf("attached are %+v", f)
		}
		c, err := cassette.Open(file)
		if err != nil || len(c.Blobs) != 1 || !strings.HasPrefix(string(c.Blobs[0].Content), "\x89PNG") {
			t.Errorf("the cassette holds %+v, %v", c.Blobs, err)
		}
	}
}

func TestAPlayedModelGoesOnAfterAResume(t *testing.T) {
	steps := "- calls: [{tool: list, args: {path: .}}]\n- calls: [{tool: list, args: {path: b}}]\n- say: three\n"
	_, file := taped(t, "tools: [{name: list}]\ninputs: {schema: {type: object, properties: {who: {type: string}}}}", steps)
	tape := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: tape}, tools: [{name: list}], policyRefs: [{name: p}], approvals: {onAsk: Suspend}}\n---\n" +
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: tape}\nspec: {provider: cassette, cassette: {path: " + file + "}}\n---\n" +
		policyOf("rules: [{name: ask, match: {tools: [list]}, when: \"call.args.path == 'b'\", action: ask}]")
	p := newPlace(t, tape, nil)
	want(t, p.run(t), reason.ApprovalRequired)
	record := filepath.Join(t.TempDir(), "again.jsonl")
	out, err := p.resume(t, func(o *ResumeOptions) { o.Record = record })
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	if out.Result().Output != "three" || out.Run.Steps != 3 {
		t.Errorf("the run says %q after %d steps", out.Result().Output, out.Run.Steps)
	}
	replaysAsItWas(t, out, record)
}
