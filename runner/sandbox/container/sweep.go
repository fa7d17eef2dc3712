package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"

	"agentctl.dev/agentctl/api/reason"
)

// Swept says what a sweep has removed.
type Swept struct {
	Containers, Snapshots, Folders int
}

// sweepTime bounds the removal of one container.
const sweepTime = 10 * time.Second

// Sweep removes what runners that are gone have left: containers with their
// tasks and snapshots, then the folders on this host. What belongs to a process
// that lives, or that cannot be judged from here, stays. Without a containerd
// only the folders are swept.
func (r *Runtime) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	var errs []error
	client, err := r.connected(ctx)
	var absent *reason.Error
	switch {
	case errors.As(err, &absent):
	case err != nil:
		return swept, err
	default:
		ctx := r.context(ctx)
		n, err := r.sweepContainers(ctx, client)
		swept.Containers = n
		errs = append(errs, err)
		swept.Snapshots, err = r.sweepSnapshots(ctx, client)
		errs = append(errs, err)
	}
	for _, d := range r.strays() {
		if err := d.remove(); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", d.root, err))
			continue
		}
		swept.Folders++
	}
	return swept, errors.Join(errs...)
}

func (r *Runtime) sweepContainers(ctx context.Context, client *containerd.Client) (int, error) {
	all, err := client.Containers(ctx)
	if err != nil {
		return 0, fmt.Errorf("list containers: %w", err)
	}
	var (
		mu   sync.Mutex
		errs []error
		n    int
		wg   sync.WaitGroup
	)
	for _, c := range all {
		info, err := c.Info(ctx, containerd.WithoutRefreshedMetadata)
		if err != nil || !gone(info.Labels[labelOwner]) {
			continue
		}
		release, err := r.slot(ctx)
		if err != nil {
			errs = append(errs, err)
			break
		}
		wg.Go(func() {
			defer release()
			err := discard(ctx, c)
			removeGroups(r.opts.Namespace, c.ID())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("sweep container %s: %w", c.ID(), err))
				return
			}
			n++
		})
	}
	wg.Wait()
	return n, errors.Join(errs...)
}

// discard removes a container with its task and snapshot.
func discard(ctx context.Context, c containerd.Container) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	task, err := c.Task(ctx, nil)
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	if err == nil {
		ended, err := task.Wait(ctx)
		if err == nil {
			if err = task.Kill(ctx, syscall.SIGKILL, containerd.WithKillAll); err == nil {
				select {
				case <-ended:
				case <-ctx.Done():
				}
			}
		}
		if _, err := task.Delete(ctx, containerd.WithProcessKill); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	if err := c.Delete(ctx, containerd.WithSnapshotCleanup); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// sweepSnapshots removes those whose container was never recorded.
func (r *Runtime) sweepSnapshots(ctx context.Context, client *containerd.Client) (int, error) {
	service := client.SnapshotService(r.info.Snapshotter)
	var stray []string
	err := service.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		if gone(info.Labels[labelOwner]) {
			stray = append(stray, info.Name)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("list snapshots: %w", err)
	}
	n := 0
	var errs []error
	for _, name := range stray {
		if err := service.Remove(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("sweep snapshot %s: %w", name, err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}
