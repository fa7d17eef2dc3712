package tool

import (
	"fmt"
	"os"
)

// baseEnv are the variables every program gets besides the declared ones.
var baseEnv = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

// Environment returns the base variables of this process followed by the
// declared ones. Nothing else is handed on.
func Environment(declared []string) []string {
	env := make([]string, 0, len(baseEnv)+len(declared))
	for _, name := range baseEnv {
		value, ok := os.LookupEnv(name)
		if name == "PATH" && !ok {
			value, ok = "/usr/local/bin:/usr/bin:/bin", true
		}
		if ok {
			env = append(env, fmt.Sprintf("%s=%s", name, value))
		}
	}
	return append(env, declared...)
}
