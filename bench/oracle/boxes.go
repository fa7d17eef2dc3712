//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// boxes run scripts, each box one at a time.
type boxes struct {
	jobs  chan job
	ctx   context.Context //nolint:containedctx // ends with the first box that fails
	stop  context.CancelCauseFunc
	group sync.WaitGroup
}

type job struct {
	order
	trace chan<- Trace
}

// openBoxes starts boxes, which are ended by Close.
func openBoxes(ctx context.Context, count int) *boxes {
	b := &boxes{jobs: make(chan job)}
	b.ctx, b.stop = context.WithCancelCause(ctx)
	for range max(1, count) {
		b.group.Go(func() {
			if err := b.serve(); err != nil {
				b.stop(err)
			}
		})
	}
	return b
}

// Run returns what a script does.
func (b *boxes) Run(o order) (Trace, error) {
	trace := make(chan Trace, 1)
	select {
	case b.jobs <- job{o, trace}:
	case <-b.ctx.Done():
		return Trace{}, context.Cause(b.ctx)
	}
	select {
	case t := <-trace:
		return t, nil
	case <-b.ctx.Done():
		return Trace{}, context.Cause(b.ctx)
	}
}

// Close ends the boxes and waits for them.
func (b *boxes) Close() {
	b.stop(context.Canceled)
	b.group.Wait()
}

// serve runs jobs in a box of its own.
func (b *boxes) serve() error {
	return inBox(b.ctx, func(in *json.Encoder, out *json.Decoder) error {
		for {
			select {
			case <-b.ctx.Done():
				return nil
			case j := <-b.jobs:
				var t Trace
				if err := in.Encode(j.order); err != nil {
					return err
				}
				if err := out.Decode(&t); err != nil {
					return fmt.Errorf("script %q: the box has ended: %w", j.Script, err)
				}
				j.trace <- t
			}
		}
	})
}

// inBox starts a box and ends it.
func inBox(ctx context.Context, use func(*json.Encoder, *json.Decoder) error) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", boxArgument)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a box: %w", err)
	}
	err = use(json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out)))
	_ = in.Close() // the box ends at the end of its orders
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	return err
}
