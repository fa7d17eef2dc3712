package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// TestNothingIsLeftOfAHundredRuns, of thirty under the race detector, kills every fifth
// of them at some moment, so that nothing of it can tidy up. Where a containerd can be started,
// every tenth run has a tool in a container, and of those every second dies.
func TestNothingIsLeftOfAHundredRuns(t *testing.T) {
	needSandbox(t)
	temp, err := os.MkdirTemp("/tmp", "lk-") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	libexec, work := buildTools(t), t.TempDir()
	env := append(os.Environ(), "TMPDIR="+temp, "AGENTCTL_LIBEXEC="+libexec, "AGENTCTL_STATE="+filepath.Join(work, "state"))
	text := manifest("allow", calling("sleep 0.0$RANDOM & echo a >b", "setsid sleep 987 & cat /etc/hostname; true"))
	put(t, filepath.Join(work, "plain", "a.yaml"), text)
	put(t, filepath.Join(work, "files", "a.txt"), "x\n")
	sets := []string{filepath.Join(work, "plain")}
	if containerdtest.Missing() == "" {
		daemon, err := containerdtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := daemon.Stop(); err != nil {
				t.Error(err)
			}
		})
		env = append(env, "CONTAINERD_ADDRESS="+daemon.Address)
		t.Setenv("CONTAINERD_ADDRESS", daemon.Address)
		boxed := "kind: Tool\nmetadata: {name: look}\nspec:\n  risk: R0\n  parameters: {type: object}\n  source: {container: {image: \"" +
			image(t, filepath.Join(libexec, "agentctl-tools")) + "\", tool: list}}\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy"
		text = strings.Replace(text, "kind: Policy", boxed, 1)
		text = strings.Replace(text, "{name: bash}]", "{name: bash}, {name: look}]", 1)
		text = strings.Replace(text, "{tool: bash", "{tool: look, args: {path: .}}, {tool: bash", 1)
		put(t, filepath.Join(work, "boxed", "a.yaml"), text)
		sets = append(sets, filepath.Join(work, "boxed"))
	}

	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // moments to die at
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	var mu sync.Mutex
	ended := map[string]int{}
	for i := range leakRuns {
		set, after := sets[0], time.Duration(0)
		if i%10 == 5 && len(sets) > 1 {
			set = sets[1]
		}
		if i%5 == 0 {
			after = time.Duration(5+random.IntN(100)) * time.Millisecond
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
			defer cancel()
			run := exec.CommandContext(ctx, "agentctl", "run", "-f", set, "-p", "go", "--workspace", filepath.Join(work, "files"), "-o", "json")
			run.Env = env
			var errs strings.Builder
			run.Stderr = &errs
			if err := run.Start(); err != nil {
				t.Error(err)
				return
			}
			if after > 0 {
				defer time.AfterFunc(after, func() { _ = run.Process.Kill() }).Stop() // it may have ended
			}
			err := run.Wait()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ended["well"]++
			} else if ended["killed"]++; after == 0 {
				t.Errorf("run %d: %v\n%s", i, err, errs.String())
			}
		})
	}
	wg.Wait()
	t.Logf("ended: %v", ended)

	var told []byte
	for range 2 { // the first sweeps what the second must not find
		doctor := exec.CommandContext(t.Context(), "agentctl", "doctor", "-o", "json")
		doctor.Env = env
		if told, err = doctor.CombinedOutput(); err != nil {
			t.Errorf("doctor: %v\n%s", err, told)
		}
	}
	if !strings.Contains(string(told), `"swept": 0`) {
		t.Errorf("a sweep leaves something:\n%s", told)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); ; <-tick.C {
		left := leftovers(t, temp, libexec)
		if len(left) == 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
		}
	}
}

// leftovers are processes, mounts and folders of runs that are over.
func leftovers(t *testing.T, temp, libexec string) (left []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // it has just ended
		line := strings.ReplaceAll(string(b), "\x00", " ")
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(f), "exe"))
		if strings.Contains(line, "sleep 987") || strings.HasPrefix(exe, libexec) {
			left = append(left, fmt.Sprintf("process %s: %s", filepath.Base(filepath.Dir(f)), line))
		}
	}
	kept := filepath.Join(temp, "agentctl-"+strconv.Itoa(os.Getuid()))
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, temp) {
			left = append(left, "mount "+line)
		}
	}
	err = filepath.WalkDir(temp, func(path string, d os.DirEntry, err error) error {
		if err == nil && !slices.Contains([]string{temp, kept, filepath.Join(kept, "cache"), filepath.Join(kept, "cache", "sandbox-probes.json")}, path) {
			left = append(left, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}
