package shell

import "strings"

// Names of the shipped tools that run commands.
const (
	ToolBash = "bash"
	// ToolArgv takes a command and its arguments without a shell.
	ToolArgv = "workspace_shell"
)

// OfCall returns the script that a call of a shipped tool runs, and the folder it starts in.
// Arguments that no shell sees are the script in which each word is quoted: what it does is
// then found out, and judged, as for bash. ok is false where there is no script.
func OfCall(tool string, args map[string]any) (text, dir string, ok bool) {
	text, ok = args["command"].(string)
	if tool != ToolArgv {
		dir, _ = args["workdir"].(string)
		return text, dir, ok
	}
	dir, _ = args["cwd"].(string)
	words := []string{Quote(text)}
	list, _ := args["args"].([]any)
	for _, a := range list {
		word, isText := a.(string)
		ok = ok && isText
		words = append(words, Quote(word))
	}
	return strings.Join(words, " "), dir, ok
}

// Quote makes a text one word of a script that stands for itself.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
