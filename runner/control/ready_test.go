package control

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	head      = "apiVersion: agentctl.dev/v1alpha1\n"
	agentYAML = head + "kind: Agent\nmetadata: {name: worker, labels: {team: web}}\nspec:\n  modelRef: {name: script}\n  tools: [{name: echo}]\n  policyRefs: [{name: open}]\n"
	modelYAML = head + `kind: Model
metadata: {name: script}
spec:
  provider: scripted
  scripted:
    steps:
    - {say: one, calls: [{tool: echo, args: {text: a}}]}
    - {say: two, calls: [{tool: echo, args: {text: b}}]}
    - {say: "done: ${last.output}"}
`
	toolYAML = head + `kind: Tool
metadata: {name: echo}
spec:
  parameters: {type: object, properties: {text: {type: string}}}
  risk: R0
  retry: Idempotent
  isolation: {minimum: None}
  source: {exec: {command: [cat]}}
`
	policyYAML = head + "kind: Policy\nmetadata: {name: open}\nspec:\n  rules:\n  - {name: echo, match: {tools: [echo]}, when: \"call.args.text != ''\", action: allow}\n"
	sep        = "---\n"
)

func TestAnAgentFollowsWhatItNames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(agentYAML + sep + toolYAML + sep + policyYAML)
	await[client.Object](s, &v1alpha1.Agent{}, &v1alpha1.AgentList{}, "worker", func(o client.Object) bool {
		r := readyOf(o)
		return r.why == "ReferenceNotFound" && strings.HasPrefix(r.message, `model "script" not found`) // the others have been seen
	})
	s.apply(modelYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	if err := s.Delete(context.Background(), &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "open"}}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady("Agent", "worker", "False", "ReferenceNotFound")
	s.apply(policyYAML)
	s.awaitReady("Agent", "worker", "True", "Accepted")
	// A policy that selects the agent counts, although the agent does not name it.
	s.apply(head + "kind: Policy\nmetadata: {name: broken}\nspec:\n  appliesTo: {agentSelector: {matchLabels: {team: web}}}\n  rules: [{name: x, when: \"call.nothing\", action: deny}]\n")
	s.awaitReady("Policy", "broken", "False", "PolicyInvalid")
	s.awaitReady("Agent", "worker", "False", "PolicyInvalid")
	s.apply(head + "kind: Policy\nmetadata: {name: broken}\nspec:\n  appliesTo: {agentSelector: {matchLabels: {team: db}}}\n  rules: [{name: x, when: \"call.nothing\", action: deny}]\n")
	s.awaitReady("Agent", "worker", "True", "Accepted")
}

func TestAPolicyCompilesAgainstTheToolsItMeets(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(toolYAML + sep + policyYAML)
	s.awaitReady("Policy", "open", "True", "Accepted")
	s.apply(strings.Replace(toolYAML, "text: {type: string}", "size: {type: integer}", 1))
	bad := s.awaitReady("Policy", "open", "False", "PolicyInvalid")
	if m := readyOf(bad).message; !strings.Contains(m, "spec.rules[0].when") {
		t.Errorf("the message is %q, want it to say where", m)
	}
	s.apply(toolYAML)
	s.awaitReady("Policy", "open", "True", "Accepted")
}

func TestRelativePathsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(strings.Replace(toolYAML, "[cat]", "[./bin/cat]", 1))
	bad := s.awaitReady("Tool", "echo", "False", "PathNotAbsolute")
	if m := readyOf(bad).message; !strings.Contains(m, "spec.source.exec.command[0]") || !strings.Contains(m, "./bin/cat") {
		t.Errorf("the message is %q, want the field and the path", m)
	}
	s.apply(toolYAML)
	s.awaitReady("Tool", "echo", "True", "Accepted")
}

func TestAToolThatDoesNotStartSaysSo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(agentYAML + sep + modelYAML + sep + policyYAML + sep + strings.Replace(toolYAML, "[cat]", "[/no/such/program]", 1))
	s.awaitReady("Tool", "echo", "False", "PluginFailed")
	agent := s.awaitReady("Agent", "worker", "False", "PluginFailed")
	if m := readyOf(agent).message; !strings.Contains(m, `tool "echo" is not ready`) || !strings.Contains(m, "/no/such/program") {
		t.Errorf("the message is %q, want the tool and what is wrong with it", m)
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat\n"), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	s.apply(strings.Replace(toolYAML, "[cat]", "["+program+"]", 1))
	tool := s.awaitReady("Tool", "echo", "True", "Accepted")
	if d := tool.(*v1alpha1.Tool).Status.Digest; !strings.HasPrefix(d, "sha256:") {
		t.Errorf("the digest is %q, want what the program was found to be", d)
	}
	s.awaitReady("Agent", "worker", "True", "Accepted")
}

func TestTheTransitionTimeChangesWithTheStatusAlone(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(toolYAML)
	before := s.awaitReady("Tool", "echo", "True", "Accepted").(*v1alpha1.Tool)
	s.apply(strings.Replace(toolYAML, "risk: R0", "risk: R1", 1))
	after := s.awaitReady("Tool", "echo", "True", "Accepted").(*v1alpha1.Tool)
	if after.Generation == before.Generation || after.Status.ObservedGeneration != after.Generation {
		t.Errorf("generation %d was observed as %d", after.Generation, after.Status.ObservedGeneration)
	}
	if !after.Status.Conditions[0].LastTransitionTime.Equal(&before.Status.Conditions[0].LastTransitionTime) {
		t.Error("the transition time changed, and the status did not")
	}
}

func TestAStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(toolYAML + sep + policyYAML)
	before := s.awaitReady("Policy", "open", "True", "Accepted")
	// The policy is looked at again for every tool, and nothing of it changes.
	s.apply(strings.Replace(toolYAML, "name: echo", "name: other", 1))
	s.awaitReady("Tool", "other", "True", "Accepted")
	s.apply(head + "kind: Policy\nmetadata: {name: last}\nspec: {default: ask}\n")
	s.awaitReady("Policy", "last", "True", "Accepted") // behind the other in the line of one worker
	after := &v1alpha1.Policy{}
	if err := s.Get(context.Background(), client.ObjectKeyFromObject(before), after); err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != before.GetResourceVersion() {
		t.Errorf("the policy was written again: %+v", after.Status)
	}
}

// A Test is stored, and reports whether it could be carried out. It is not.
func TestATestFollowsWhatItNames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const testYAML = head + `kind: Test
metadata: {name: works}
spec:
  agentRef: {name: worker}
  modelRef: {name: other}
  policyRefs: [{name: open}]
  record: /srv/works.cassette.jsonl
  workspace: {source: {path: /srv/files}}
  expect: ["size(calls) == 2", {name: ends, expression: "result.exitCode == 0 && calls.all(c, c.tool == 'echo')"}]
  cases: [{name: one, modelRef: {name: script}}]
`
	s.apply(agentYAML + sep + toolYAML + sep + policyYAML + sep + modelYAML + sep + testYAML)
	bad := s.awaitReady("Test", "works", "False", "ReferenceNotFound")
	if m := readyOf(bad).message; !strings.HasPrefix(m, `model "other" not found`) {
		t.Errorf("the message is %q, want what is missing", m)
	}
	s.apply(strings.Replace(modelYAML, "name: script", "name: other", 1))
	s.awaitReady("Test", "works", "True", "Accepted")
	// What it expects is typed by the tools of its agent.
	s.apply(strings.Replace(testYAML, "'echo'", "'ehco'", 1))
	bad = s.awaitReady("Test", "works", "False", "SpecInvalid")
	if m := readyOf(bad).message; !strings.Contains(m, `spec.expect[1].expression: c.tool is never "ehco" (did you mean echo?`) {
		t.Errorf("the message is %q, want the place and the word", m)
	}
	s.apply(strings.Replace(testYAML, "/srv/files", "files", 1))
	bad = s.awaitReady("Test", "works", "False", "PathNotAbsolute")
	if m := readyOf(bad).message; !strings.Contains(m, "spec.workspace.source.path") {
		t.Errorf("the message is %q, want the field", m)
	}
	s.apply(testYAML)
	s.awaitReady("Test", "works", "True", "Accepted")
	if err := s.Delete(context.Background(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "worker"}}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady("Test", "works", "False", "ReferenceNotFound")
	var runs v1alpha1.RunList
	if err := s.List(context.Background(), &runs, client.InNamespace(s.name)); err != nil || len(runs.Items) > 0 {
		t.Errorf("runs %v, %v: a control plane carries out no test", runs.Items, err)
	}
}
