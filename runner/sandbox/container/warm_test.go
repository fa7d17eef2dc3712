package container_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// counted starts numbers and notes which have been stopped.
type counted struct {
	next    atomic.Int32
	mu      sync.Mutex
	stopped []int
	dead    map[int]bool
}

func (c *counted) start(context.Context) (int, error) { return int(c.next.Add(1)), nil }

func (c *counted) warm() *container.Warm[int] {
	return container.NewWarm(container.WarmOptions[int]{
		Stop:  func(n int) { c.mu.Lock(); defer c.mu.Unlock(); c.stopped = append(c.stopped, n) },
		Alive: func(n int) bool { c.mu.Lock(); defer c.mu.Unlock(); return !c.dead[n] },
		Most:  2, Idle: time.Minute,
	})
}

func (c *counted) ended() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.stopped) }

func TestWhatIsWarmIsUsedAgainAndEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counted
		w := c.warm()
		get := func(key string) (int, func()) {
			n, release, err := w.Get(t.Context(), key, c.start)
			if err != nil {
				t.Fatal(err)
			}
			return n, release
		}
		first, release := get("a")
		release()
		release() // once more is harmless
		time.Sleep(50 * time.Second)
		if again, r := get("a"); again != first {
			t.Errorf("got %d, want the warm %d", again, first)
		} else {
			r()
		}
		time.Sleep(50 * time.Second) // less than idle since its last use
		if again, r := get("a"); again != first {
			t.Errorf("got %d: the idle time counts from the last use", again)
		} else {
			r()
		}
		if n, r := get("b"); n == first {
			t.Error("two keys share one")
		} else {
			r()
		}
		time.Sleep(61 * time.Second)
		if got := c.ended(); got != 2 {
			t.Errorf("%d have been stopped after the idle time, want 2", got)
		}
		if n, r := get("a"); n == first {
			t.Error("a stopped one was handed out")
		} else {
			r()
		}
		w.Close()
		if got := c.ended(); got != 3 {
			t.Errorf("%d have been stopped by Close, want 3", got)
		}
		if _, _, err := w.Get(t.Context(), "a", c.start); err == nil {
			t.Error("a closed one starts")
		}
	})
}

func TestAtMostSoManyAreWarmAndTheyAreShared(t *testing.T) {
	var c counted
	w := c.warm()
	defer w.Close()
	seen := map[int]int{}
	for range 6 {
		n, _, err := w.Get(t.Context(), "a", c.start)
		if err != nil {
			t.Fatal(err)
		}
		seen[n]++
	}
	if len(seen) != 2 || seen[1] != 3 || seen[2] != 3 {
		t.Errorf("users of each: %v, want 3 of 2", seen)
	}
}

func TestADeadOneIsNotHandedOut(t *testing.T) {
	c := counted{dead: map[int]bool{}}
	w := c.warm()
	n, release, err := w.Get(t.Context(), "a", c.start)
	if err != nil {
		t.Fatal(err)
	}
	release()
	c.mu.Lock()
	c.dead[n] = true
	c.mu.Unlock()
	if again, _, err := w.Get(t.Context(), "a", c.start); err != nil || again == n {
		t.Errorf("got %d, %v", again, err)
	}
	w.Close()
	if got := c.ended(); got != 2 {
		t.Errorf("%d have been stopped, want 2", got)
	}
}

func TestAStartThatFailsIsTriedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counted
		w := c.warm()
		defer w.Close()
		broken := errors.New("broken")
		fail := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, broken }
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, _, err := w.Get(t.Context(), "a", fail); !errors.Is(err, broken) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slow := func(context.Context) (int, error) { time.Sleep(time.Minute); return 7, nil }
		for range 2 { // as many as there may be
			wg.Go(func() { _, _, _ = w.Get(t.Context(), "a", slow) })
		}
		synctest.Wait()
		if _, _, err := w.Get(ctx, "a", c.start); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one who waits too long: %v", err)
		}
		wg.Wait()
	})
}

func TestOnlyContainersWithNothingOfARunAreShared(t *testing.T) {
	image := "localhost/x@sha256:" + strings.Repeat("ab", 32)
	key := func(s container.Spec) string { s.Image = image; return s.ShareKey("policies") }
	same := key(container.Spec{})
	if same == "" || key(container.Spec{Run: "other", Tool: "y", Limits: container.Limits{Pids: 128}}) != same {
		t.Error("two that are alike have two keys")
	}
	for name, s := range map[string]container.Spec{
		"workspace": {Workspace: "/w"}, "env": {Env: []string{"A=b"}}, "mounts": {Mounts: []v1alpha1.Mount{{Path: "/x"}}},
		"proxy": {Network: v1alpha1.NetworkProxy}, "host": {Network: v1alpha1.NetworkHost},
	} {
		if k := key(s); k != "" {
			t.Errorf("%s is shared", name)
		}
	}
	for name, s := range map[string]container.Spec{
		"command": {Argv: []string{"/a"}}, "limits": {Limits: container.Limits{Memory: 1}}, "runtime": {RuntimeClass: "x"},
	} {
		if k := key(s); k == "" || k == same {
			t.Errorf("%s: key %q", name, k)
		}
	}
	s := container.Spec{Image: image}
	if s.ShareKey("others") == same {
		t.Error("other policies share a container")
	}
	if s.Image = "busybox"; s.ShareKey("policies") != "" {
		t.Error("an image without a digest is shared")
	}
}
