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

// forms are all lines under which a deny or an ask recognises the command: by
// name and by path, and with its flags as a set written like the pattern's.
func (c *command) forms(flags string) []string {
	args := c.Argv
	if len(args) > 0 {
		args = args[1:]
	}
	by := strings.Join(append([]string{c.Name}, args...), " ")
	forms := []string{by}
	if l := strings.Join(c.Argv, " "); l != by {
		forms = append(forms, l)
	}
	if flags == "" {
		return forms
	}
	letters, rest, long := "", []string{}, []string{}
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "--") && len(a) > 2:
			name, _, _ := strings.Cut(a[2:], "=")
			letters += longAsLetter[name]
			long = append(long, a)
		case strings.HasPrefix(a, "-") && len(a) > 1:
			letters += a[1:]
		default:
			rest = append(rest, a)
		}
	}
	for _, l := range strings.ToLower(flags) {
		if !strings.ContainsRune(strings.ToLower(letters), l) {
			return forms
		}
	}
	// Flags may be before or after a sub-command.
	for at := range min(len(rest), 2) + 1 {
		words := append([]string{c.Name}, rest[:at]...)
		words = append(words, "-"+flags)
		forms = append(forms, strings.Join(append(append(words, rest[at:]...), long...), " "))
	}
	return forms
}
