package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	containersapi "github.com/containerd/containerd/api/services/containers/v1"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"

	"agentctl.dev/agentctl/api/reason"
)

// Swept counts what a sweep has removed.
type Swept struct {
	Containers, Snapshots, Folders int
	// Shims are processes of containerd for containers that it does not know: it
	// forgets those whose runner ends while they are being created.
	Shims int
}

// sweepTime bounds the removal of one container.
const sweepTime = 10 * time.Second

// Sweep removes what runners that have ended left behind: containers with their
// tasks and snapshots, then the folders on this host. What belongs to a running
// process, or to a process that cannot be checked from here, stays. Without a
// containerd only the folders are swept.
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
		swept.Containers, err = r.sweepContainers(ctx, d)
		errs = append(errs, err)
		swept.Snapshots, err = r.sweepSnapshots(ctx, d)
		errs = append(errs, err)
		swept.Shims, err = r.sweepShims(ctx, d)
		errs = append(errs, err, r.sweepGroups(ctx, d))
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

// sweepShims ends the shims whose container is not recorded. A record is
// written before its shim is started. So a shim that was seen before the
// records are listed and is in none of them is an orphan.
func (r *Runtime) sweepShims(ctx context.Context, d *daemon) (int, error) {
	seen := shims(r.opts.Namespace, r.opts.Address)
	if err := d.onlyUnknown(ctx, seen); err != nil {
		return 0, err
	}
	n := 0
	for id, pid := range seen {
		switch err := syscall.Kill(pid, syscall.SIGKILL); {
		case err == nil:
			n++
		case errors.Is(err, syscall.EPERM): // not root: root's next sweep finds it
			r.opts.Log.Warn("a shim of containerd is left", "pid", pid, "id", id)
		}
		removeGroups(r.opts.Namespace, id)
	}
	return n, nil
}

// sweepGroups removes the empty cgroups whose container is not recorded. A runc
// that is still running when its shim is killed creates them afterwards.
func (r *Runtime) sweepGroups(ctx context.Context, d *daemon) error {
	seen := groups(r.opts.Namespace)
	if err := d.onlyUnknown(ctx, seen); err != nil {
		return err
	}
	for id := range seen {
		removeGroups(r.opts.Namespace, id)
	}
	return nil
}

// onlyUnknown removes the containers that containerd knows from those that were
// seen, by their ids.
func (d *daemon) onlyUnknown(ctx context.Context, seen map[string]int) error {
	if len(seen) == 0 {
		return nil
	}
	all, err := d.containers.List(ctx, &containersapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	for _, c := range all.GetContainers() {
		delete(seen, c.GetID())
	}
	return nil
}

// shims lists the processes that containerd has started for containers of a
// namespace, by the container's id.
func shims(namespace, address string) map[string]int {
	out := map[string]int{}
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range found {
		text, _ := os.ReadFile(file)
		args := strings.Split(string(text), "\x00")
		value := func(flag string) string {
			if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
				return args[i+1]
			}
			return ""
		}
		id := value("-id")
		if !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") || id == "" || value("-namespace") != namespace || value("-address") != address {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			out[id] = pid
		}
	}
	return out
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
