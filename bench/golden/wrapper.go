package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wrapWord makes this program the agentctl of a story: golden wrap-agentctl PID FOLDER PROGRAM
// ARGUMENT...
// runs the program and writes what it printed into a file of the folder.
const wrapWord = "wrap-agentctl"

// invocation is one run of agentctl in a story.
type invocation struct {
	// Began and Ended order invocations; Parent is the process of the story that
	// started it, 0 for the story itself.
	Began, Ended int64
	Parent       int
	Args         []string
	Stdin        string
	Code         int
	Signal       string
	Stdout       string
	Stderr       string
}

// wrap returns the exit code.
func wrap(args []string) int {
	harness, folder, program, args := args[0], args[1], args[2], args[3:]
	// The child must not outlive a wrapper that is killed; the kernel watches the thread.
	runtime.LockOSThread()
	cmd := exec.Command(program, args...) //nolint:noctx // the story ends it
	cmd.Args[0] = "agentctl"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in := invocation{Began: time.Now().UnixNano(), Parent: ancestor(harness), Args: args, Stdin: stdinHash()}
	cmd.Stdin = os.Stdin
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = tee(os.Stdout, &out), tee(os.Stderr, &errs)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGPIPE)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		return 125
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			in.Signal = st.Signal().String()
		}
	}
	in.Ended = time.Now().UnixNano()
	in.Code = cmd.ProcessState.ExitCode()
	in.Stdout, in.Stderr = out.String(), errs.String()
	text, err := json.Marshal(in)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d-%d.json", in.Began, os.Getpid())), text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		return 125
	}
	if in.Code < 0 {
		// Whatever waits for this program is to see the same end.
		st, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		signal.Reset(st.Signal())
		_ = syscall.Kill(os.Getpid(), st.Signal())
		return 128 + int(st.Signal())
	}
	return in.Code
}

// ancestor is the process that a story has started and that has started this one,
// perhaps by way of others: a shell has one for each pipe and $(...). It is 0 where
// the story itself started this one.
func ancestor(harness string) int {
	for pid := os.Getpid(); pid > 1; {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return pid
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return pid
		}
		if fields[1] == harness {
			if pid == os.Getpid() {
				return 0
			}
			return pid
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return 1
		}
	}
	return 1
}

// tee hands on to a file and keeps a copy. A terminal stays a terminal: what goes to
// it is kept by the story.
func tee(f *os.File, keep io.Writer) io.Writer {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
		return f
	}
	// A pipe without a reader has to be one for the program too.
	pipe := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}} //nolint:gosec // a descriptor is small
	if _, err := unix.Poll(pipe, 0); err == nil && pipe[0].Revents&unix.POLLERR != 0 {
		return f
	}
	return both{f, keep}
}

type both struct {
	f    *os.File
	keep io.Writer
}

// Write keeps what the reader behind f took: one that has gone ends the copy, and so
// the writer is told.
func (b both) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	_, _ = b.keep.Write(p[:max(0, n)]) // a strings.Builder
	return n, err
}

// stdinHash describes what stands on stdin if it is a file. The text of a pipe stands
// in the story and is the same for both builds.
func stdinHash() string {
	st, err := os.Stdin.Stat()
	if err != nil {
		return "none"
	}
	if st.Mode().IsRegular() {
		return fmt.Sprintf("file of %d bytes", st.Size())
	}
	return st.Mode().Type().String()
}
