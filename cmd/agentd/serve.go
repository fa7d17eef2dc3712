package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner/control"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/telemetry"
)

type serveOptions struct {
	// selfApproval permits an identity to approve calls of runs that it began; nil:
	// while there is only one identity.
	selfApproval *bool
	idle         time.Duration
	verbose      bool
	workers      int
	unsandboxed  bool
	drain        time.Duration
	retention    retention
	prune        *runs.PruneOptions
}

func (a *app) serveCmd() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API and execute runs until a signal",
		Long: `Serve the API on a port of this machine until a signal comes, or until it was not
used and no run was in progress for the time of --idle. Runs then begin nothing
further; calls in progress have the time of --drain to end, and a second signal
ends it at once. The next agentd of the same state folder continues these runs, also
when this one is killed. Everything is kept in the folder control below the state
folder. Every user who can read the file kubeconfig in it is an admin.`,
		Example: `  agentd serve
  agentd serve --state /var/lib/agentctl --idle 30m
  kubectl --kubeconfig ~/.local/state/agentctl/control/kubeconfig get agents`,
		Args:              exactly(0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.runServe(cmd.Context(), o) },
	}
	cmd.Flags().DurationVar(&o.idle, "idle", 0, "stop when it was not used for this `time`; 0: never")
	cmd.Flags().DurationVar(&o.drain, "drain", defaultDrain, "how long a stop waits for calls in progress to end, a `time`; 0: they are cut off")
	o.retention.flags(cmd)
	cmd.Flags().IntVar(&o.workers, "workers", control.DefaultLimit, "`number` of runs at a time; the others wait")
	cmd.Flags().BoolVar(&o.unsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one where this machine gives none")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also log what the libraries say")
	selfApproval := cmd.Flags().Bool("self-approval", false, "let an identity approve calls of the runs that it began (default: while there is only one identity)")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Flags().Changed("self-approval") {
			o.selfApproval = selfApproval
		}
	}
	return cmd
}

func (a *app) runServe(ctx context.Context, o serveOptions) error {
	if o.idle < 0 {
		return usagef("--idle %s: a time cannot be negative", o.idle)
	}
	if o.drain < 0 {
		return usagef("--drain %s: a time cannot be negative", o.drain)
	}
	if o.workers < 1 || o.workers > maxWorkers {
		return usagef("--workers %d: between 1 and %d runs can run at once", o.workers, maxWorkers)
	}
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	if o.prune, err = o.retention.options(state); err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
	var plane atomic.Pointer[control.Plane]
	busy := func() bool { p := plane.Load(); return p != nil && p.Busy() }
	server, err := embedded.Start(ctx, embedded.Options{State: state, Log: log, IdleAfter: o.idle, Busy: busy, Version: version(), Forgot: giveBackNow})
	if err != nil && ctx.Err() != nil {
		log.Info("stopped", "reason", "signal, before it was ready", "error", err)
		return nil //nolint:nilerr // who asked it to stop gets what they asked for
	}
	if err != nil {
		return err
	}
	traces := telemetry.Open(telemetry.Options{Getenv: withoutCaller(os.Getenv), Version: version()})
	defer closeTelemetry(traces, log)
	p, err := control.New(control.Options{
		Config: server.Loopback(), State: state, Log: log, Limit: o.workers, AllowUnsandboxed: o.unsandboxed, Version: version(),
		StartedBy: startedBy,
		Collect:   true, Room: server.Room, Drain: o.drain,
		Events:    control.Sinks(control.LogSink(log), control.CoreSink(server.Events().Record)),
		Telemetry: traces,
		Started:   giveBackNow, // half of the memory is garbage of the start
	})
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	plane.Store(p)
	forget, err := server.Expose(p.Metrics())
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	defer forget()
	l, err := mountLive(server, p, state, log, func() bool {
		if o.selfApproval != nil {
			return *o.selfApproval
		}
		return soleIdentity(server.Tokens())
	})
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	log.Info("ready", "url", server.URL(), "kubeconfig", server.Kubeconfig())
	err = serve(ctx, server, p, log, o)
	unmountLive(l, log)
	if stopped := server.Stop(); err == nil && stopped != nil {
		err = fmt.Errorf("stop the control plane: %w", stopped)
	}
	return err
}

// defaultDrain is less than what service managers wait for a process to end.
const defaultDrain = 10 * time.Second

// maxWorkers bounds --workers: each run has programs of its own.
const maxWorkers = 4096

// serve follows the objects until it is time to stop. The server outlives the
// controllers: the last thing they do is write to it.
func serve(ctx context.Context, server *embedded.Server, p *control.Plane, log *slog.Logger, o serveOptions) error {
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan error, 1)
	go func() { followed <- p.Run(follow) }()
	var tidy sync.WaitGroup
	defer tidy.Wait() // it ends with follow
	defer cancel()
	tidy.Go(func() { giveBack(follow) })
	tidy.Go(func() { retain(follow, o.prune, log) })
	var failed error
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", "signal")
	case <-server.Idle():
		log.Info("stopping", "reason", "not used", "idle", o.idle.String())
	case <-server.Done():
		failed = server.Err()
	case err := <-followed:
		return err
	}
	cancel()
	return errors.Join(failed, <-followed)
}
