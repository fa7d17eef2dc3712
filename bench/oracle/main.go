//go:build linux && amd64

// Command oracle compares what the analysis says a shell script does with what it does: it
// runs scripts in a box under a tracer and reports each effect that is missing in the facts
// of a script whose facts are called exact.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == boxArgument {
		fail(serveBox())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := parseOptions().run(ctx)
	fail(err)
	if found {
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(2)
	}
}
