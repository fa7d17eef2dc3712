package evidence

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// commands are those of a call that runs commands. Which of them is decisive follows from
// the text of its script, by the rules of the shell, and from what was seen to be executed:
//
//	the record of the call        decisive
//	none                          the one command of a script that has no other
//	holds the command             what the text says
//	does not hold it              not: a branch that was not taken
//
// A record does not say who has executed a program. Where a command of the script whose
// status does not count may have started others, what was seen proves nothing.
// A script that cannot be understood has no decisive command.
func commands(s *expect.Set, c *message.ToolPart) []any {
	of := s.Shell(c.Tool)
	if of == "" {
		return []any{}
	}
	var args map[string]any
	if json.Unmarshal(c.Input, &args) != nil {
		return []any{}
	}
	text, _, ok := shell.OfCall(of, args)
	if !ok {
		return []any{}
	}
	facts := shell.Parse(text, "")
	alone, telling := len(facts.Commands) == 1, true
	for i := range facts.Commands {
		k := &facts.Commands[i]
		telling = telling && (k.Decisive || startsNothing(k))
	}
	all := make([]any, len(facts.Commands))
	for i := range facts.Commands {
		k := &facts.Commands[i]
		all[i] = map[string]any{
			"name": expect.Text(k.Name), "argv": texts(k.Argv), "words": texts(words(k.Argv)),
			"decisive": k.Decisive && telling && executed(c.Result, k, alone),
		}
	}
	return all
}

// startsNothing reports whether a command is known to start no program.
func startsNothing(k *shell.Command) bool {
	quoted := make([]string, len(k.Argv))
	for i, w := range k.Argv {
		if w == shell.Unknown && i > 0 {
			w = "x" // an argument that only the run can tell
		}
		quoted[i] = shell.Quote(w)
	}
	f := shell.Parse(strings.Join(quoted, " "), "")
	return !f.Opaque && !f.Dynamic && len(f.Starts) == 0 && len(f.Commands) == 1
}

// executed reports whether a command was seen to be executed. Alone says that the script is
// nothing else.
func executed(r *message.ToolResult, k *shell.Command, alone bool) bool {
	if r == nil || r.Record == nil {
		return alone
	}
	return slices.ContainsFunc(r.Record.Programs, func(e message.Execution) bool {
		return len(e.Argv) > 0 && path.Base(e.Argv[0]) == k.Name && matches(k.Argv[1:], e.Argv[1:])
	})
}

// matches compares arguments as they were written with those that were seen, up to the
// first that only the run could tell.
func matches(written, seen []string) bool {
	for i, w := range written {
		if w == shell.Unknown || strings.ContainsAny(w, "*?[~") {
			return true
		}
		if i >= len(seen) || seen[i] != w {
			return false
		}
	}
	return len(seen) == len(written)
}

// words are the program, its subcommand and what follows it, without the options in front of
// the subcommand: "go", "test", "./..." of go -C sub test ./...
func words(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	program := argv[0]
	if dir := path.Dir(program); dir == "/usr/bin" || dir == "/bin" || dir == "/usr/local/bin" {
		program = path.Base(program)
	}
	_, rest, known := shell.Spelling(append([]string{program}, argv[1:]...))
	if !known {
		rest = argv[1:]
	}
	return append([]string{program}, rest...)
}
