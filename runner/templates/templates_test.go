package templates

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// TestEveryTemplateIsWritten: whole, with its own folder in what names it, and without
// links to pages that are not there.
func TestEveryTemplateIsWritten(t *testing.T) {
	for _, template := range All() {
		t.Run(template.Name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			w, err := Write(WriteOptions{Template: template.Name, Dir: "bots/mine", CI: "github"})
			if err != nil {
				t.Fatal(err)
			}
			if w.Pipeline != filepath.Join(".github", "workflows", template.Name+".yaml") {
				t.Errorf("the pipeline is %s", w.Pipeline)
			}
			for _, name := range []string{"agent.yaml", "policy.yaml", "test.yaml", "README.md", "ci/github.yaml", "ci/gitlab.yaml"} {
				if info, err := os.Stat(filepath.Join("bots/mine", name)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, name := range []string{w.Pipeline, "bots/mine/ci/gitlab.yaml", "bots/mine/README.md"} {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if s := string(text); !strings.Contains(s, "bots/mine") || strings.Contains(s, "agents/"+template.Name) || strings.Contains(s, "manifests/"+template.Name) || strings.Contains(s, "](../") {
					t.Errorf("%s does not fit its folder:\n%s", name, s)
				}
			}
		})
	}
}

func TestNothingIsReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	mine := filepath.Join(".gitlab", "research.yaml")
	for _, name := range []string{"used/notes.md", mine, "file"} {
		if err := Create(name, []byte("mine")); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]WriteOptions{
		"a folder with a file":             {Template: "research", Dir: "used"},
		"a file in place of the folder":    {Template: "research", Dir: "file"},
		"a pipeline that is there":         {Template: "research", CI: "gitlab"},
		"no such template":                 {Template: "poet"},
		"no template":                      {},
		"a pipeline for nobody":            {Template: "research", CI: "jenkins"},
		"a pipeline of a folder outside":   {Template: "research", Dir: "../x", CI: "github"},
		"a pipeline of an absolute folder": {Template: "research", Dir: filepath.Join(t.TempDir(), "x"), CI: "github"},
	} {
		var usage *reason.UsageError
		if _, err := Write(o); !errors.As(err, &usage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat("agents"); err == nil {
		t.Error("something was written")
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("the pipeline is %q, %v", text, err)
	}
}

func TestAShorterNameIsTheSameTemplate(t *testing.T) {
	t.Chdir(t.TempDir())
	w, err := Write(WriteOptions{Template: "triage"})
	if err != nil || w.Template != "ci-failure-explainer" || w.Dir != filepath.Join("agents", "ci-failure-explainer") {
		t.Errorf("%+v, %v", w, err)
	}
	w, err = Write(WriteOptions{Template: "reviewer"})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(w.Dir, "review.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the script cannot be executed: %v", err)
	}
}
