package container

import (
	"context"
	"encoding/json"
	"syscall"

	tasksapi "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"
)

// task is a process in containerd: the first process of a container, or an
// additional one, which has a name of its own.
type task struct {
	daemon    *daemon
	container string
	exec      string
	pid       int
	io        cio.IO
}

// newTask creates the first process of a container; it waits for start. The
// pipes are closed when it fails.
func (d *daemon) newTask(ctx context.Context, id string, root []mount.Mount, creator cio.Creator) (*task, error) {
	streams, err := creator(id)
	if err != nil {
		return nil, err
	}
	c := streams.Config()
	req := &tasksapi.CreateTaskRequest{ContainerID: id, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}
	for _, m := range root {
		req.Rootfs = append(req.Rootfs, &types.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	resp, err := d.tasks.Create(ctx, req)
	if err != nil {
		hangUp(streams)
		return nil, errgrpc.ToNative(err)
	}
	return &task{daemon: d, container: id, pid: int(resp.GetPid()), io: streams}, nil
}

// add creates one more process in a container; it waits for start.
func (d *daemon) add(ctx context.Context, id, name string, p *specs.Process, creator cio.Creator) (*task, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	streams, err := creator(name)
	if err != nil {
		return nil, err
	}
	c := streams.Config()
	_, err = d.tasks.Exec(ctx, &tasksapi.ExecProcessRequest{
		ContainerID: id, ExecID: name, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		Spec: &anypb.Any{TypeUrl: specType + "Process", Value: text},
	})
	if err != nil {
		hangUp(streams)
		return nil, errgrpc.ToNative(err)
	}
	return &task{daemon: d, container: id, exec: name, io: streams}, nil
}

// hangUp closes streams whose other ends will not be opened any more.
func hangUp(streams cio.IO) {
	streams.Cancel()
	_ = streams.Close()
}

// start lets the process go.
func (t *task) start(ctx context.Context) error {
	resp, err := t.daemon.tasks.Start(ctx, &tasksapi.StartRequest{ContainerID: t.container, ExecID: t.exec})
	if err != nil {
		return errgrpc.ToNative(err)
	}
	t.pid = int(resp.GetPid())
	return nil
}

// wait returns the exit code once the process has ended, or an error of the
// connection. It may be asked again.
func (t *task) wait(ctx context.Context) (uint32, error) {
	resp, err := t.daemon.tasks.Wait(ctx, &tasksapi.WaitRequest{ContainerID: t.container, ExecID: t.exec})
	if err != nil {
		return 0, errgrpc.ToNative(err)
	}
	return resp.GetExitStatus(), nil
}

// signal sends a signal to the process, or to everything in its container.
func (t *task) signal(ctx context.Context, sig syscall.Signal, all bool) error {
	_, err := t.daemon.tasks.Kill(ctx, &tasksapi.KillRequest{ContainerID: t.container, ExecID: t.exec, Signal: uint32(sig), All: all})
	return errgrpc.ToNative(err)
}

// closeInput reports the end of the input.
func (t *task) closeInput(ctx context.Context) error {
	_, err := t.daemon.tasks.CloseIO(ctx, &tasksapi.CloseIORequest{ContainerID: t.container, ExecID: t.exec, Stdin: true})
	return errgrpc.ToNative(err)
}

// remove deletes a process that has ended.
func (t *task) remove(ctx context.Context) error {
	var err error
	if t.exec == "" {
		_, err = t.daemon.tasks.Delete(ctx, &tasksapi.DeleteTaskRequest{ContainerID: t.container})
	} else {
		_, err = t.daemon.tasks.DeleteProcess(ctx, &tasksapi.DeleteProcessRequest{ContainerID: t.container, ExecID: t.exec})
	}
	if t.io != nil {
		hangUp(t.io)
	}
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// discard kills the process, started or not, and deletes it.
func (t *task) discard(ctx context.Context) error {
	err := t.signal(ctx, syscall.SIGKILL, t.exec == "")
	if errdefs.IsNotFound(err) && t.exec == "" {
		// It has ended, or does not exist: remove returns which.
		return t.remove(ctx)
	}
	if err == nil {
		_, err = t.wait(ctx)
	}
	if t.io != nil {
		t.io.Cancel() // it may never have been started, and so never have opened its ends
	}
	if removeErr := t.remove(ctx); removeErr != nil {
		return removeErr
	}
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsFailedPrecondition(err) {
		return err
	}
	return nil
}
