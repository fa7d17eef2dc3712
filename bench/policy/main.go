// Command policy measures the decisions of agentctl about shell commands of corpora that are named by a path, and prints one table.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"agentctl.dev/agentctl/bench/policy/measure"
)

func main() {
	if measure.Stub(os.Args[0], os.Stdout) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}
