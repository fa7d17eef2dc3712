package main

import (
	"fmt"
	"io"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

func run(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) != 1 || args[0] != spec.EscapeArg {
		fmt.Fprintln(errs, "agentctl-escape tries to get out of a sandbox and is started by agentctl doctor.")
		return 2
	}
	return escape(in, out, errs)
}
