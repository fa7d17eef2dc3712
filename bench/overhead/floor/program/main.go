// Command program is the floor as a process.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"agentctl.dev/agentctl/bench/overhead/floor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := floor.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}
