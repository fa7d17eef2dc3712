package shell

import (
	"slices"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// Known reports whether the analysis knows what a program does with its arguments. An
// argument of an unknown program may be anything, also a file that it writes.
func Known(name string) bool {
	if p, ok := programs.Find(name); ok {
		return !slices.ContainsFunc(p.Rules, func(r programs.Rule) bool { return r.Verb == "operands" && r.Args[0] == "passed..." })
	}
	return isKnown(name)
}
