package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// manyManifest is an agent without programs of its own, with the same ten rules
// and journal: what is weighed is the run, not its shells. SERVER is replaced.
//
//go:embed many.yaml
var manyManifest string

// manyTimeout bounds all conversations of one process.
const manyTimeout = 3 * time.Minute

// settle is how long a process is left alone before it is weighed.
const settle = 500 * time.Millisecond

// held is one process full of waiting conversations.
type held struct {
	kilobytes float64       // each, above idle
	wall      time.Duration // of the whole process
}

// measureMany holds conversations open in one process: the floor's are
// goroutines with net/http, ours are runs by the front door, as a daemon has them.
func measureMany(ctx context.Context, b *bench, reps int) error {
	program := ""
	if !b.floor {
		var err error
		if program, err = buildPart(ctx, b.dir, "many", "many"); err != nil {
			return err
		}
	}
	all, err := alternate(b, 0, reps, func(s side) (held, error) { return b.hold(ctx, s, program) })
	if err != nil {
		return err
	}
	compare(b.report, fmt.Sprintf("%d conversations at once, each above idle", b.conversations), "KB", all,
		func(h held) float64 { return h.kilobytes }, atMost(110))
	compare(b.report, "all of them, start to end", "ms", all, func(h held) float64 { return ms(h.wall) }, nil)
	return nil
}

// hold starts a process that has all conversations, and checks that all ended.
func (b *bench) hold(ctx context.Context, s side, program string) (held, error) {
	ctx, cancel := context.WithTimeout(ctx, manyTimeout)
	defer cancel()
	f, err := newFolders(b.dir, s.name)
	if err != nil {
		return held{}, err
	}
	defer os.RemoveAll(f.root)
	var pid atomic.Int64
	r, err := openRoom(ctx, b.conversations, settle, func() treePeak { return weigh(descendants(int(pid.Load()))) })
	if err != nil {
		return held{}, err
	}
	defer r.close()
	n := strconv.Itoa(b.conversations)
	argv := []string{program, r.url, n, f.manifests, f.workspace, f.state}
	if s.name == sideFloor {
		argv = []string{s.files[0], "-many", n, r.url}
	}
	text := strings.ReplaceAll(manyManifest, "SERVER", r.url)
	if err := os.WriteFile(filepath.Join(f.manifests, "many.yaml"), []byte(text), 0o600); err != nil {
		return held{}, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir, cmd.Env = f.root, f.env()
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return held{}, err
	}
	pid.Store(int64(cmd.Process.Pid))
	err = cmd.Wait()
	wall := time.Since(begin)
	if err != nil {
		return held{}, fmt.Errorf("%w\n%s", err, tail(stderr.Bytes()))
	}
	if got := strings.TrimSpace(stdout.String()); got != n+" ended" {
		return held{}, fmt.Errorf("the process says %q, want all %s ended", got, n)
	}
	kilobytes, err := r.heldKB()
	if err != nil {
		return held{}, err
	}
	return held{kilobytes, wall}, leftBehind()
}
