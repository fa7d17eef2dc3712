package cli

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets no wish of whoever runs the tests for colours through, and no
// goroutine outlive them.
func TestMain(m *testing.M) {
	_ = os.Unsetenv("CLICOLOR_FORCE")
	goleak.VerifyTestMain(m)
}
