package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func skillYAML(dir string) string {
	return head + "kind: Skill\nmetadata: {name: fix}\nspec: {dir: " + dir + "}\n"
}

// writeSkill makes a folder with the text of a skill.
func writeSkill(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASkillFollowsItsFolder(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(skillYAML("skills/fix"))
	s.awaitReady("Skill", "fix", "False", "PathNotAbsolute")
	s.apply(skillYAML("/no/such/folder"))
	bad := s.awaitReady("Skill", "fix", "False", "SpecInvalid")
	if m := readyOf(bad).message; m != "spec.dir: /no/such/folder: there is no such folder" {
		t.Errorf("the message is %q", m)
	}
	s.apply(skillYAML(writeSkill(t, "---\nname: fix\n---\nMend it.\n")))
	good := s.awaitReady("Skill", "fix", "True", "Accepted").(*v1alpha1.Skill)
	if !strings.HasPrefix(good.Status.Digest, "sha256:") {
		t.Errorf("the digest is %q", good.Status.Digest)
	}
}

// TestASkillWithAPlanIsReady: a model reads its steps.
func TestASkillWithAPlanIsReady(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(head + "kind: Skill\nmetadata: {name: planned}\nspec: {plan: {steps: [{tool: read, args: {path: x}}]}}\n")
	s.awaitReady("Skill", "planned", "True", "Accepted")
}

// TestWhatDoesNotWorkYetIsNotReady: an object that would be accepted without effect has a
// condition that says so.
func TestWhatDoesNotWorkYetIsNotReady(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(strings.Replace(toolYAML, "spec:\n", "spec:\n  flow: {integrity: Trusted}\n", 1))
	if m := readyOf(s.awaitReady("Tool", "echo", "False", "SpecInvalid")).message; !strings.Contains(m, "not supported by this version") {
		t.Errorf("the message is %q", m)
	}
}

// TestASkillInAnImageIsReady: a run fetches it, and its folder is not one of this host.
func TestASkillInAnImageIsReady(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(head + "kind: Skill\nmetadata: {name: fetched}\nspec: {image: 'localhost:1/team/skill@sha256:" + strings.Repeat("ab", 32) + "', dir: skills/x}\n")
	s.awaitReady("Skill", "fetched", "True", "Accepted")
}

// TestAnAgentWithASkillIsReady: what an agent names is there, and works.
func TestAnAgentWithASkillIsReady(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(modelYAML + sep + toolYAML + sep + policyYAML + sep + skillYAML(writeSkill(t, "---\nname: fix\ndescription: Mends.\n---\nMend it.\n")))
	s.apply(strings.Replace(agentYAML, "  policyRefs:", "  skills: [{name: fix}]\n  policyRefs:", 1))
	s.awaitReady("Agent", "worker", "True", "Accepted")
}

// TestASkillIsReadAgain changes the file of a skill, which triggers no event.
func TestASkillIsReadAgain(t *testing.T) {
	dir := writeSkill(t, "one")
	b := newBench(t, skillYAML(dir))
	r := &skillReconciler{base: b.base}
	digest := func() string {
		t.Helper()
		result, err := r.Reconcile(t.Context(), request("fix"))
		if err != nil || result.RequeueAfter != lookAgain {
			t.Fatalf("%+v, %v", result, err)
		}
		s := &v1alpha1.Skill{}
		if err := b.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "fix"}, s); err != nil {
			t.Fatal(err)
		}
		return s.Status.Digest + " " + readyOf(s).status
	}
	first := digest()
	if again := digest(); again != first || b.writes != 1 {
		t.Errorf("a text that stays was written %d times", b.writes)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if second := digest(); second == first || !strings.HasSuffix(second, "True") {
		t.Errorf("the text changed, and the status from %q to %q", first, second)
	}
	if err := os.Remove(filepath.Join(dir, "SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if gone := digest(); gone != " False" {
		t.Errorf("the text is gone, and the status is %q", gone)
	}
}
