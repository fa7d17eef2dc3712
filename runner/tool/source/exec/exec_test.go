package exec

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
)

func TestWhatToDoAboutACommandThatDoesNotStart(t *testing.T) {
	if plain := hint(nil); strings.Contains(plain, "sandbox") {
		t.Errorf("outside: %s", plain)
	}
	if inside := hint(&spec.Profile{}); !strings.Contains(inside, "spec.isolation.mounts") {
		t.Errorf("in a sandbox: %s", inside)
	}
}

func TestAProgramIsLookedForAndNotAsked(t *testing.T) {
	kinds := tool.Kinds{Kind()}
	for program, want := range map[string]string{"/bin/sh": "", "bin/sh": "not an absolute path", "/bin/none-here": "find its program"} {
		d, err := kinds.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{CallName: "x", Source: v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: []string{program}}}}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := tool.NewPool(tool.PoolOptions{Site: tool.NewSite(tool.SiteOptions{Kinds: kinds})}).Functions(t.Context(), &d)
		switch {
		case want == "":
			if err != nil || len(found) != 1 || found[0].Name != "x" {
				t.Errorf("%s: %v, %v", program, found, err)
			}
		case reason.Of(err) != reason.ToolError || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", program, err, want)
		}
	}
}
