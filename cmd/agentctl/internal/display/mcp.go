package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/pluginkit"
)

// MCPReport shows what a server offers, what was checked, and the answer of a call.
func MCPReport(stdout, stderr *Screen, r *pluginkit.MCPReport) error {
	if r.Answer != nil {
		for _, c := range r.Checks {
			if c.Problem != "" {
				Notice(stderr, "FAIL  "+Line(c.Check)+": "+Line(c.Problem))
			}
		}
		return PluginAnswer(stdout, stderr, r.Answer)
	}
	var b strings.Builder
	for _, f := range r.Functions {
		first, _, _ := strings.Cut(strings.TrimSpace(f.Description), "\n")
		line := Line(f.CallName)
		if f.CallName != f.Name {
			line += " (" + Line(f.Name) + ")"
		}
		if hints := f.Hints.String(); hints != "" {
			line += "  [it says: " + hints + "]"
		}
		fmt.Fprintln(&b, line)
		if first != "" {
			fmt.Fprintln(&b, "    "+Line(first))
		}
	}
	fmt.Fprintln(&b)
	for _, c := range r.Checks {
		if c.Problem == "" {
			fmt.Fprintln(&b, "ok    "+Line(c.Check))
		} else {
			fmt.Fprintln(&b, "FAIL  "+Line(c.Check)+": "+Line(c.Problem))
		}
	}
	return Text(stdout, strings.TrimRight(b.String(), "\n"))
}
