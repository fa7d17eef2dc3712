package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	containersapi "github.com/containerd/containerd/api/services/containers/v1"
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
	d, err := r.connected(ctx)
	var absent *reason.Error
	switch {
	case errors.As(err, &absent):
	case err != nil:
		return swept, err
	default:
		ctx := r.context(ctx)
		n, err := r.sweepContainers(ctx, d)
		swept.Containers = n
		errs = append(errs, err)
		swept.Snapshots, err = r.sweepSnapshots(ctx, d)
		errs = append(errs, err)
	}
	for _, stray := range r.strays() {
		if err := stray.remove(); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", stray.root, err))
			continue
		}
		swept.Folders++
	}
	return swept, errors.Join(errs...)
}

func (r *Runtime) sweepContainers(ctx context.Context, d *daemon) (int, error) {
	all, err := d.containers.List(ctx, &containersapi.ListContainersRequest{})
	if err != nil {
		return 0, fmt.Errorf("list containers: %w", err)
	}
	var (
		mu   sync.Mutex
		errs []error
		n    int
		wg   sync.WaitGroup
	)
	for _, c := range all.GetContainers() {
		if !gone(c.GetLabels()[labelOwner]) {
			continue
		}
		release, err := r.slot(ctx)
		if err != nil {
			errs = append(errs, err)
			break
		}
		wg.Go(func() {
			defer release()
			err := d.discard(ctx, c.GetID())
			removeGroups(r.opts.Namespace, c.GetID())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("sweep container %s: %w", c.GetID(), err))
				return
			}
			n++
		})
	}
	wg.Wait()
	return n, errors.Join(errs...)
}

// discard removes a container with its task and snapshot.
func (d *daemon) discard(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	if err := (&task{daemon: d, container: id}).discard(ctx); err != nil {
		return err
	}
	return d.forget(ctx, id)
}

// sweepSnapshots removes those whose container was never recorded.
func (r *Runtime) sweepSnapshots(ctx context.Context, d *daemon) (int, error) {
	var stray []string
	err := d.snapshots.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
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
		if err := d.snapshots.Remove(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("sweep snapshot %s: %w", name, err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}
