package cli

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner/control/embedded"
)

type serveOptions struct {
	idle    time.Duration
	verbose bool
}

func (a *app) serveCmd() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API until a signal",
		Long: `Serve the API on a port of this machine until a signal comes, or until nobody has
used it for the time of --idle. Everything is kept in the folder control below the
state folder; who can read the file kubeconfig in it is an admin.`,
		Example: `  agentd serve
  agentd serve --state /var/lib/agentctl --idle 30m
  kubectl --kubeconfig ~/.local/state/agentctl/control/kubeconfig get agents`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runServe(cmd.Context(), o) },
	}
	cmd.Flags().DurationVar(&o.idle, "idle", 0, "stop when nobody has used it for this `time`; 0: never")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also log what the libraries say")
	return cmd
}

func (a *app) runServe(ctx context.Context, o serveOptions) error {
	if o.idle < 0 {
		return usagef("--idle %s: a time cannot be negative", o.idle)
	}
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
	server, err := embedded.Start(ctx, embedded.Options{State: state, Log: log, IdleAfter: o.idle})
	if err != nil && ctx.Err() != nil {
		log.Info("stopped", "reason", "signal, before it was ready", "error", err)
		return nil //nolint:nilerr // who asked it to stop gets what they asked for
	}
	if err != nil {
		return err
	}
	log.Info("ready", "url", server.URL(), "kubeconfig", server.Kubeconfig())
	// Half of the memory is garbage of the start, which nothing would collect
	// while nobody asks.
	debug.FreeOSMemory()
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", "signal")
	case <-server.Idle():
		log.Info("stopping", "reason", "nobody uses it", "idle", o.idle.String())
	case <-server.Done():
		err = server.Err()
	}
	if stopped := server.Stop(); err == nil && stopped != nil {
		err = fmt.Errorf("stop the control plane: %w", stopped)
	}
	return err
}
