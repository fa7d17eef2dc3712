package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// FindProgram returns the path of one of our own programs: beside this
// program's resolved file, in ../libexec/agentctl, or in AGENTCTL_LIBEXEC.
// PATH is never searched: whoever can write there could become a tool.
func FindProgram(name string) (string, error) {
	var dirs []string
	if exe, err := os.Executable(); err == nil {
		if exe, err = filepath.EvalSymlinks(exe); err == nil {
			dir := filepath.Dir(exe)
			dirs = append(dirs, dir, filepath.Join(dir, "..", "libexec", "agentctl"))
		}
	}
	if dir := os.Getenv("AGENTCTL_LIBEXEC"); filepath.IsAbs(dir) {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", reason.New(reason.ToolError, "%s is not in %s", name, strings.Join(dirs, ", ")).
		WithHint("run make build, or set AGENTCTL_LIBEXEC to the folder that holds %s", name)
}

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
