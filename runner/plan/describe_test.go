package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

func TestBashIsDescribedWithItsLimits(t *testing.T) {
	base, _ := builtin.Lookup("bash")
	limits := v1alpha1.ToolLimits{Timeout: metav1.Duration{Duration: 2 * time.Minute}, OutputLines: 200, OutputBytes: 4096}
	for _, c := range []struct {
		reason, shipped, description, want string
		spec                               v1alpha1.ToolSpec
	}{
		{
			"all that bounds it", "bash", base.Description, " It starts in the workspace folder of the environment, whose files it may change; a call has 2m; you read 200 lines or 4096 bytes of output; no network.",
			v1alpha1.ToolSpec{WorkspaceAccess: v1alpha1.AccessReadWrite, Limits: limits, Network: v1alpha1.Network{Mode: v1alpha1.NetworkNone}},
		},
		{
			"read-only, with hosts", "bash", base.Description, " It starts in the workspace folder of the environment, whose files are read-only; network: a.example:443.",
			v1alpha1.ToolSpec{WorkspaceAccess: v1alpha1.AccessReadOnly, Network: v1alpha1.Network{Mode: v1alpha1.NetworkProxy, Allow: []string{"a.example:443"}}},
		},
		{"the author's own words", "bash", "My shell.", "", v1alpha1.ToolSpec{WorkspaceAccess: v1alpha1.AccessReadWrite}},
		{"another tool", "", base.Description, "", v1alpha1.ToolSpec{WorkspaceAccess: v1alpha1.AccessReadWrite}},
	} {
		d := tool.Definition{Description: c.description, Spec: c.spec, Facts: tool.Facts{Shipped: c.shipped}}
		describe(&d, nil)
		if got := strings.TrimPrefix(d.Description, c.description); got != c.want {
			t.Errorf("%s: %q is added, want %q", c.reason, got, c.want)
		}
		if Undescribed(&d, d.Description) != (c.shipped != "" && c.want == "" && c.description == base.Description) {
			t.Errorf("%s: %q counts as that of an earlier version", c.reason, d.Description)
		}
	}
	for d, want := range map[time.Duration]string{10 * time.Second: "10s", time.Hour: "1h", 90 * time.Second: "1m30s", time.Hour + 10*time.Minute: "1h10m"} {
		if got := short(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
