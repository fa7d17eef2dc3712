package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const attachAgent = `
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  modelRef: {name: m}
  policyRefs: [{name: p}]
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, model: script, scripted: {steps: [{say: done}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
`

func TestAttachedFilesAreJudgedAndReadBeneathTheWorkspace(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for name, text := range map[string]string{"ws/in.png": png, "ws/id_rsa": png, "out.png": png} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"ws/link.png": "in.png", "ws/away.png": "../out.png", "ws/key.png": "id_rsa"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		policy, file, want string
	}{
		"a file of the workspace":          {"  default: allow", "ws/in.png", ""},
		"a link inside":                    {"  default: allow", "ws/link.png", ""},
		"a link that leads out":            {"  default: allow", "ws/away.png", "away.png"},
		"a file that a person has outside": {"  default: allow", "out.png", ""},
		"read is denied":                   {"  rules: [{name: r, match: {tools: [read]}, action: deny}]", "ws/in.png", "refused by p/r"},
		"secrets are denied":               {"  rules: [{name: r, when: \"paths.exists(p, p.secret)\", action: deny}]", "ws/key.png", "refused by p/r"},
		"a rule would ask":                 {"  rules: [{name: r, match: {tools: [read]}, action: ask}]", "ws/in.png", ""},
		"only a default denies":            {"  default: deny", "ws/in.png", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := os.WriteFile(file, []byte(attachAgent+c.policy+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			o := RunOptions{Paths: []string{file}, Workspace: filepath.Join(top, "ws"), Prompt: "go", State: t.TempDir(), Attach: []string{filepath.Join(top, c.file)}}
			_, err := Run(t.Context(), o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
