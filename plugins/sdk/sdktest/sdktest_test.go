package sdktest

import (
	"os"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// TestMain makes the test's own binary the plugin program under test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve-fixtures" {
		sdk.Serve(Fixtures()...)
		return
	}
	os.Exit(m.Run())
}

func self(t testing.TB) Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Command: []string{exe, "serve-fixtures"}, Env: []string{"DECLARED=yes", "PATH=/usr/bin:/bin"}}
}

func TestSDKServesProperPrograms(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	Run(t, self(t))
}

func TestSDKKeepsEveryPromise(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	t.Run("fixtures", func(t *testing.T) { RunFixtures(t, self(t)) })
}
