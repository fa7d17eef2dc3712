package policy

import "agentctl.dev/agentctl/runner/policy/shell"

// runsCommands reports whether a call of the tool is judged as commands.
func (t *Tool) runsCommands() bool { return t.Builtin == shell.ToolBash || t.Builtin == shell.ToolArgv }

// script returns the script that a call runs, and the folder it starts in.
func (t *Tool) script(fields map[string]any) (text, dir string, ok bool) {
	return shell.OfCall(t.Builtin, fields)
}
