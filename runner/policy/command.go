package policy

import (
	"path"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// command is a simple command in the forms that patterns are compared with.
type command struct {
	shell.Command
	// elsewhere is a program by a path that is not the system's.
	elsewhere bool
	// spelled is the result of canonical.
	spelled *command
}

// canonical is the command in the one spelling that the table of programs has for it.
func (c *command) canonical() *command {
	if c.spelled == nil && len(c.Argv) > 0 {
		argv := shell.Canonical(append([]string{c.Name}, c.Argv[1:]...))
		c.spelled = &command{Command: shell.Command{Name: argv[0], Argv: argv}}
	}
	if c.spelled == nil {
		return c
	}
	return c.spelled
}

func newCommand(c shell.Command) command {
	out := command{Command: c}
	if len(c.Argv) > 0 && strings.Contains(c.Argv[0], "/") {
		dir := path.Dir(c.Argv[0])
		out.elsewhere = path.Clean(c.Argv[0]) != strings.TrimPrefix(c.Argv[0], "./") && path.Clean(c.Argv[0]) != c.Argv[0] ||
			strings.HasPrefix(dir, "..")
	}
	return out
}

// program is the program as an allow must name it: the system's by its name,
// others by their path.
func (c *command) program() string {
	if len(c.Argv) == 0 {
		return c.Name
	}
	switch path.Dir(c.Argv[0]) {
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin":
		return c.Name
	}
	return c.Argv[0]
}

func (c *command) line() string {
	if len(c.Argv) == 0 {
		return c.Name
	}
	return strings.Join(append([]string{c.program()}, c.Argv[1:]...), " ")
}

// forms are the lines under which a deny or an ask recognises the command: by the name of
// its program and by its path.
func (c *command) forms() []string {
	forms := []string{c.Name}
	if len(c.Argv) > 0 {
		forms[0] = strings.Join(append([]string{c.Name}, c.Argv[1:]...), " ")
	}
	if l := strings.Join(c.Argv, " "); l != forms[0] {
		forms = append(forms, l)
	}
	return forms
}
