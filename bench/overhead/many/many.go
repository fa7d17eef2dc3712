package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"

	"agentctl.dev/agentctl/runner"
)

// run has one conversation that warms everything up, reports to be idle, then
// has as many as it is told at once.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 5 {
		return errors.New("usage: many URL NUMBER MANIFESTS WORKSPACE STATE")
	}
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	o := runner.RunOptions{Paths: args[2:3], Workspace: args[3], State: args[4], Approve: "never", AllowUnsandboxed: true, Version: "bench", Shared: &runner.Shared{}}
	if err := converse(ctx, o); err != nil {
		return err
	}
	// A process that mostly waits gives memory back for a little more work.
	debug.SetGCPercent(50)
	debug.FreeOSMemory()
	if err := idle(ctx, args[0]); err != nil {
		return err
	}
	errs := make([]error, number)
	var group sync.WaitGroup
	for i := range number {
		group.Go(func() { errs[i] = converse(ctx, o) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, number, "ended")
	return err
}

func converse(ctx context.Context, o runner.RunOptions) error {
	out, err := runner.Run(ctx, o)
	if err != nil {
		return err
	}
	if out.ExitCode() != 0 {
		return fmt.Errorf("run %s ended with exit code %d", out.Run.ID, out.ExitCode())
	}
	return nil
}

// idle tells the server, which answers when it has weighed this process.
func idle(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/idle", http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
