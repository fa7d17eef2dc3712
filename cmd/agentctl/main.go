// Command agentctl runs agents that are declared as manifests, under a policy and with a journal.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"agentctl.dev/agentctl/cmd/agentctl/internal/cli"
)

// exitQuit is 128 and the number of SIGQUIT, as a shell reports it.
const exitQuit = 131

func main() {
	putOffCollection()
	// A reader that goes away ("| head") is an error of a write, not the end of
	// the process: the tools of a run have to be stopped first. A handler, and
	// not signal.Ignore, because programs we start would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// The trace of all goroutines, which Go would write, does not help at a terminal.
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		for range quit {
			if !cli.Watching() {
				os.Exit(exitQuit)
			}
		}
	}()
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
