package main

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

const reasonsHead = `# Reasons and exit codes

How a run or a command ends and what an object's condition says, for people who write pipelines. Written by ` + "`make generate`" + ` from the one list that the program
has; ` + "`agentctl help exit-codes`" + ` shows the same. [Troubleshooting](../troubleshooting.md) says what to do.

| reason | exit code | |
|---|---|---|
`

// reasonsPage is the reference of all reasons, by their exit code; those without one are
// only in conditions of objects.
func reasonsPage() string {
	var b strings.Builder
	b.WriteString(reasonsHead)
	all := reason.All()
	slices.SortStableFunc(all, func(x, y reason.Info) int { return rank(x) - rank(y) })
	for _, r := range all {
		code := "–"
		if r.ExitCode >= 0 {
			code = fmt.Sprint(r.ExitCode)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Reason, code, cell(r.Meaning))
	}
	b.WriteString("\n## Next\n\n- [Commands and flags](cli.md).\n- [Output and events](../output.md): where a reason is shown.\n")
	return b.String()
}

// lastRank is behind every exit code.
const lastRank = 1000

func rank(r reason.Info) int {
	if r.ExitCode < 0 {
		return lastRank
	}
	return r.ExitCode
}
