// Command agentctl runs agents that are declared as manifests, under a policy and with a journal.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"agentctl.dev/agentctl/cmd/agentctl/internal/cli"
)

func main() {
	putOffCollection()
	// A reader that goes away ("| head") is an error of a write, not the end of
	// the process: the tools of a run have to be stopped first. A handler, and
	// not signal.Ignore, because programs we start would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
