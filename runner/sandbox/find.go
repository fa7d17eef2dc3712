package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// Helper is the file name of the program that builds sandboxes.
const Helper = "agentctl-sandbox"

// FindProgram returns the path of one of the programs of this project: next to
// this program's resolved file, in ../libexec/agentctl, or in AGENTCTL_LIBEXEC.
// PATH is never searched: a user with write access to a folder of PATH could
// let a tool escape.
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
	return "", reason.New(reason.IsolationUnavailable, "%s is not in %s", name, strings.Join(dirs, ", ")).
		WithHint("run make build, or set AGENTCTL_LIBEXEC to the folder that holds %s", name)
}

// helper returns the path of agentctl-sandbox.
func (l *Launcher) helper() (string, error) {
	if l.opts.Helper != "" {
		return l.opts.Helper, nil
	}
	return FindProgram(Helper)
}
