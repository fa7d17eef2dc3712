package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// runTimeout bounds one run of either side.
const runTimeout = 2 * time.Minute

// sample is one run.
type sample struct {
	// Wall is spawn → exit, Cold is spawn → arrival of the first request.
	Wall, Cold time.Duration
	// Overheads are, per turn, the end of an answer → the next request, Spans
	// its begin → the next request.
	Overheads, Spans []time.Duration
	// CPU is user and system time of the process and all it waited for.
	CPU time.Duration
	// DiskReads are the page faults that had to wait for the disk.
	DiskReads int64
	// Memory is set when it was sampled.
	Memory treePeak
}

// folders of one run, all fresh.
type folders struct{ root, manifests, workspace, state, home string }

func newFolders(dir, name string) (folders, error) {
	root, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return folders{}, err
	}
	f := folders{
		root: root, manifests: filepath.Join(root, "manifests"), workspace: filepath.Join(root, "workspace"),
		state: filepath.Join(root, "state"), home: filepath.Join(root, "home"),
	}
	for _, sub := range []string{f.manifests, f.workspace, f.state, f.home} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			_ = os.RemoveAll(root) // the error is told, the rest is temporary anyway
			return f, err
		}
	}
	return f, nil
}

// env is the whole environment of a measured program.
func (f folders) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "BENCH_API_KEY=none"}
}

// job is a run that is ready to start: folders are made, its server listens.
type job struct {
	side    side
	folders folders
	server  *server
}

func (s side) prepare(ctx context.Context, dir string, t talk) (*job, error) {
	f, err := newFolders(dir, s.name)
	if err != nil {
		return nil, err
	}
	j := &job{side: s, folders: f}
	if j.server, err = listen(ctx, t); err != nil {
		_ = os.RemoveAll(f.root) // the error is told, the rest is temporary anyway
		return nil, err
	}
	text := strings.ReplaceAll(manifest, "SERVER", j.server.url)
	if err := os.WriteFile(filepath.Join(f.manifests, "bench.yaml"), []byte(text), 0o600); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

func (j *job) close() {
	j.server.close()
	_ = os.RemoveAll(j.folders.root) // below a folder that is removed at the end
}

// run starts the program, waits for it and checks what it did.
func (j *job) run(ctx context.Context, memory bool) (sample, error) {
	var got sample
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	argv := j.side.argv(j.server.url, j.folders)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir, cmd.Env = j.folders.root, j.folders.env()
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return got, err
	}
	stop := func() treePeak { return treePeak{} }
	if memory {
		stop = watchTree(cmd.Process.Pid)
	}
	err := cmd.Wait()
	got.Wall = time.Since(begin)
	got.Memory = stop()
	if err != nil {
		return got, fmt.Errorf("%w\n%s%s", err, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	got.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		got.DiskReads = usage.Majflt
	}
	seen, err := j.server.result()
	if err == nil {
		err = j.side.verify(stdout.Bytes(), j.server.talk.turns)
	}
	if err != nil {
		return got, fmt.Errorf("%w\n%s", err, tail(stderr.Bytes()))
	}
	got.Cold = seen.first.Sub(begin)
	got.Overheads, got.Spans = seen.overheads, seen.spans
	return got, nil
}

// tail keeps the end of an output for an error message.
func tail(text []byte) []byte {
	const most = 2000
	return text[max(0, len(text)-most):]
}
