// Command agentd is the control plane: an API server for the kinds of agentctl, with its state in one folder.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal does not wait
	code := run(ctx, os.Args[1:], streams{Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
