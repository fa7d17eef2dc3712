package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"agentctl.dev/agentctl/cmd/internal/flags"
	"agentctl.dev/agentctl/runner/runs"
)

// retentionEvery is how often runs are deleted that are not to be kept.
const retentionEvery = 10 * time.Minute

// retention is how many runs of the state folder are kept. Without a limit all
// are: a journal is the record of what was done.
type retention struct {
	olderThan, maxSize string
	keep               int
}

func (r *retention) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.olderThan, "keep-runs-for", "", "delete the files of runs that ended longer ago, for example `30d` or 12h")
	cmd.Flags().IntVar(&r.keep, "keep-runs", -1, "delete the files of all runs but the newest `number`")
	cmd.Flags().StringVar(&r.maxSize, "keep-runs-size", "", "delete the files of the oldest runs, until the others take at most this `size`, for example 10Gi")
}

// options are the limits as a prune takes them; none: nothing is to be deleted.
func (r *retention) options(state string) (*runs.PruneOptions, error) {
	if r.olderThan == "" && r.maxSize == "" && r.keep < 0 {
		return nil, nil //nolint:nilnil // no limit is allowed
	}
	o := &runs.PruneOptions{State: state, Keep: r.keep, MaxSize: -1}
	if r.olderThan != "" {
		age, err := flags.Age(r.olderThan)
		if err != nil {
			return nil, usagef("--keep-runs-for %s: it is a time like 30d, 2w or 12h", r.olderThan)
		}
		o.OlderThan = age
	}
	if r.maxSize != "" {
		q, err := resource.ParseQuantity(r.maxSize)
		if err != nil || q.Sign() < 0 {
			return nil, usagef("--keep-runs-size %s: it is a size like 10Gi or 500M", r.maxSize)
		}
		o.MaxSize = q.Value()
	}
	return o, nil
}

// retain deletes runs that are not to be kept, until the context ends. One that is
// in progress or waits is kept in any case.
func retain(ctx context.Context, o *runs.PruneOptions, log *slog.Logger) {
	if o == nil {
		return
	}
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		prune(ctx, o, log, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func prune(ctx context.Context, o *runs.PruneOptions, log *slog.Logger, now time.Time) {
	this := *o
	this.Now = now
	deleted, size := 0, int64(0)
	err := runs.Prune(ctx, this, func(p runs.Pruned) { deleted++; size += p.Size })
	if err != nil && ctx.Err() == nil {
		log.Warn("runs that are not to be kept cannot be deleted", "error", err)
	}
	if deleted > 0 {
		log.Info("deleted the files of runs that are not to be kept", "runs", deleted, "bytes", size)
	}
}
