package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// FuzzAdmit checks the whole chain for any text: it ends without a panic, and
// what it admits can be planned and encoded, or the user learns what to name.
func FuzzAdmit(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		all := ""
		for _, file := range txtar.Parse(text).Files {
			if file.Name != "want" {
				all += string(file.Data) + "\n---\n"
			}
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, found := manifest.Load(t.Context(), []string{"-"}, strings.NewReader(text))
		c, more := Admit(set, Options{Models: provider.All(), Tools: sources.All()})
		found = append(found, more...)
		if err := found.Write(&strings.Builder{}, 0); err != nil {
			t.Error(err)
		}
		if found.HasErrors() {
			return
		}
		plan, err := c.Resolve(ResolveOptions{})
		if err != nil {
			return
		}
		if _, err := json.Marshal(plan); err != nil {
			t.Errorf("an admitted plan cannot be written: %v", err)
		}
		if len(plan.Compiled()) != len(plan.Policies) {
			t.Error("a policy of the plan is not compiled")
		}
	})
}
