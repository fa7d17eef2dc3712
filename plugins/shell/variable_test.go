package shell

import (
	"os"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// A shell that was started ahead does not have what the next call is given, and what a call
// is given is gone with it.
func TestACommandHasTheVariablesOfItsCallAlone(t *testing.T) {
	b, dir := newBash(t, grace), t.TempDir()
	for i, given := range []string{"", "tok-4711-0815-canary", "", "another-value-4711", ""} {
		call := &sdk.Call{Workspace: dir}
		if given != "" {
			call.Variables = []sdk.Variable{{Name: "API_TOKEN", Value: given}}
		}
		res := runTool(t.Context(), t, b.tool(), call, map[string]any{"command": `echo "[$API_TOKEN]"`})
		b.preparing.Wait() // the next call finds a shell that waits
		if strings.TrimSpace(res.Text) != "["+given+"]" {
			t.Errorf("call %d was given %q and says %s", i, given, res.Text)
		}
	}
	if _, set := os.LookupEnv("API_TOKEN"); set {
		t.Error("the variable is in the environment of the program")
	}
}
