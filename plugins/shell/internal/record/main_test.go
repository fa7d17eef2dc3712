package record

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// actorEnv has the test program carry out system calls, and nothing else.
const actorEnv = "RECORD_TEST_ACTOR"

func TestMain(m *testing.M) {
	if os.Getenv(actorEnv) != "" {
		act()
		os.Exit(0)
	}
	if os.Getenv(keeperEnv) != "" {
		keepActor()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
