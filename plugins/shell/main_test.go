package shell

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain keeps what would have bash say more than it is told to, such as a
// locale that is not installed, away from the commands.
func TestMain(m *testing.M) {
	for _, name := range []string{"LC_ALL", "LANG", "LANGUAGE", "BASH_ENV", "ENV", "CDPATH"} {
		_ = os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m)
}
