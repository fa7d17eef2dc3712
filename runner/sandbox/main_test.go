package sandbox

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdk/sdktest"
)

// TestMain makes the test's own binary the programs under test.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve-fixtures":
		sdk.Serve(sdktest.Fixtures()...)
	case len(os.Args) > 1 && os.Args[1] == "be-a-runner":
		beARunner()
	default:
		goleak.VerifyTestMain(m)
	}
}

// beARunner starts a program, says its process id, and waits to be killed.
func beARunner() {
	p, err := New(Options{}).Start(context.Background(), Spec{Argv: []string{"sleep", "300"}, Dir: "/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.PID())
	p.Wait()
}

func launcher(t testing.TB) *Launcher {
	t.Helper()
	l := New(Options{})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
