// Command agentctl-tools serves the tools that come with agentctl, all of them
// in one process. agentctl starts it; --describe prints what it serves.
package main

import (
	"fmt"
	"io"
	"os"

	"agentctl.dev/agentctl/plugins/sdk"
)

func main() {
	putOffCollection()
	limitProcessors()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	tools := shipped()
	switch {
	case len(args) == 1 && args[0] == "--describe":
		text, err := sdk.Describe(tools...)
		if err != nil {
			fmt.Fprintln(stderr, "agentctl-tools:", err)
			return 1
		}
		fmt.Fprintln(stdout, string(text))
		return 0
	case len(args) > 0 || os.Getenv("PLUGIN_PROTOCOL_VERSIONS") == "":
		fmt.Fprintln(stderr, "agentctl-tools serves agentctl's built-in tools and is started by agentctl; run it with --describe to see them.")
		return 2
	}
	sdk.ServeDescribed(described, tools...)
	return 0
}
