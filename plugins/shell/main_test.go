package shell

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain removes from the environment what would make bash print more, such as a locale
// that is not installed.
func TestMain(m *testing.M) {
	for _, name := range []string{"LC_ALL", "LANG", "LANGUAGE", "BASH_ENV", "ENV", "CDPATH"} {
		_ = os.Unsetenv(name)
	}
	if what := os.Getenv(denyEnv); what != "" {
		deny(what)
	}
	goleak.VerifyTestMain(m)
}
