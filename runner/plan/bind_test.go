package plan

import (
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

func TestAHostThatBindsNothingIsReportedOnce(t *testing.T) {
	shell := func(bind v1alpha1.Bind) tool.Definition {
		return tool.Definition{Name: "sh", Facts: tool.Facts{Shipped: "bash"}, Spec: v1alpha1.ToolSpec{Isolation: v1alpha1.Isolation{Bind: bind}}}
	}
	for name, tc := range map[string]struct {
		tools []tool.Definition
		why   string
		want  int
	}{
		"a host that binds":     {[]tool.Definition{shell("")}, "", 0},
		"one that does not":     {[]tool.Definition{shell(""), shell(v1alpha1.BindFacts)}, "no Landlock", 1},
		"nothing to be bound":   {[]tool.Definition{{Name: "read", Facts: tool.Facts{Shipped: "read"}}}, "no Landlock", 0},
		"what is not to be":     {[]tool.Definition{shell(v1alpha1.BindOff)}, "no Landlock", 0},
		"a tool called as bash": {[]tool.Definition{{Name: "bash"}}, "no Landlock", 0},
	} {
		if got := Unbound(tc.tools, tc.why); len(got) != tc.want {
			t.Errorf("%s: got %q, want %d warnings", name, got, tc.want)
		}
	}
}
