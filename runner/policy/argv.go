package policy

import "strings"

// The shipped tools that run commands.
const (
	builtinShell = "bash"
	// builtinArgv takes a command and its arguments without a shell.
	builtinArgv = "workspace_shell"
)

// runsCommands reports whether a call of the tool is judged as commands.
func (t *Tool) runsCommands() bool { return t.Builtin == builtinShell || t.Builtin == builtinArgv }

// script returns the script that a call runs, and the folder it starts in. Arguments that
// no shell sees are the script in which each word is quoted: what it does is then found
// out, and judged, as for bash.
func (t *Tool) script(fields map[string]any) (text, dir string, ok bool) {
	text, ok = fields["command"].(string)
	if t.Builtin != builtinArgv {
		dir, _ = fields["workdir"].(string)
		return text, dir, ok
	}
	dir, _ = fields["cwd"].(string)
	words := []string{quote(text)}
	args, _ := fields["args"].([]any)
	for _, a := range args {
		word, isText := a.(string)
		ok = ok && isText
		words = append(words, quote(word))
	}
	return strings.Join(words, " "), dir, ok
}

// quote makes a text one word of a script that stands for itself.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
