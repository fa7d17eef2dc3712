//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// result is the trace of a script, or why there is none.
type result struct {
	Trace
	err error
}

// examine runs the scripts in boxes, several at the same time. The first error is the last
// result.
func examine(ctx context.Context, scripts []string, shell string, workers int) iter.Seq[result] {
	return func(yield func(result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		orders, results := make(chan order), make(chan result)
		var group sync.WaitGroup
		for range max(1, workers) {
			group.Go(func() { work(ctx, orders, results) })
		}
		group.Go(func() {
			defer close(orders)
			for _, s := range scripts {
				select {
				case orders <- order{shell, s}:
				case <-ctx.Done():
					return
				}
			}
		})
		go func() {
			group.Wait()
			close(results)
		}()
		defer func() {
			cancel()
			for range results { // the workers end
			}
		}()
		for r := range results {
			if !yield(r) || r.err != nil {
				return
			}
		}
	}
}

// work sends orders to a box of its own.
func work(ctx context.Context, orders <-chan order, results chan<- result) {
	err := inBox(ctx, func(in *json.Encoder, out *json.Decoder) error {
		for o := range orders {
			var r result
			if err := in.Encode(o); err != nil {
				return err
			}
			if err := out.Decode(&r.Trace); err != nil {
				return fmt.Errorf("script %q: the box has ended: %w", o.Script, err)
			}
			results <- r
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		results <- result{err: err}
	}
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
