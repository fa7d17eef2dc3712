package tool

import (
	"fmt"
	"os"
	"strings"
)

// baseEnv are the variables that every program gets besides the declared ones.
var baseEnv = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

// Environment returns the base variables of this process followed by the
// declared ones. No other variable is inherited.
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
	return declare(env, declared)
}

// declare adds declared variables to those a program is given anyway. Of two with
// one name most programs take the first, and some the last: so there is one.
func declare(base, declared []string) []string {
	names := map[string]bool{}
	for _, kv := range declared {
		name, _, _ := strings.Cut(kv, "=")
		names[name] = true
	}
	env := make([]string, 0, len(base)+len(declared))
	for _, kv := range base {
		if name, _, _ := strings.Cut(kv, "="); !names[name] {
			env = append(env, kv)
		}
	}
	return append(env, declared...)
}
