package doctor

import (
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
)

// TestWhatIsMissingIsNamed: on a host without the helper programs and without
// containerd no control is OK, and each part has its reason.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Setenv("AGENTCTL_LIBEXEC", t.TempDir())
	t.Setenv(sandbox.OuterIsolationEnv, sandbox.OuterContainer)
	d, err := Examine(t.Context(), Options{State: t.TempDir(), Containerd: "/no/such.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if d.OK || d.Isolation != v1alpha1.IsolationNone || d.Containers || d.OuterIsolation != sandbox.OuterContainer || len(d.Escapes) > 0 {
		t.Errorf("got %+v", d)
	}
	at := slices.IndexFunc(d.Controls, func(c Control) bool { return c.Name == "containerd" })
	if at < 0 || d.Controls[at].OK || d.Controls[at].Why == "" {
		t.Errorf("containerd: %+v", d.Controls)
	}
	for _, c := range d.Controls {
		if !c.OK && c.Needed && c.Why == "" {
			t.Errorf("%s is missing, and nobody says why", c.Name)
		}
	}
}
