//go:build linux

package container_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// report adds the middle and the best of what was measured: on a busy machine
// the mean says little.
func report(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[0].Microseconds())/1000, "min-ms")
}

func measured(b *testing.B, f func()) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		t := time.Now()
		f()
		times = append(times, time.Since(t))
	}
	report(b, times)
}

// BenchmarkColdStart is a container from nothing to its first answer. The goal
// is 200 ms at the middle on a quiet machine.
func BenchmarkColdStart(b *testing.B) {
	r := newRuntime(b)
	if err := r.Pull(b.Context(), shared.layout); err != nil {
		b.Fatal(err)
	}
	dir, err := r.SocketDir()
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		t := time.Now()
		p, err := host.Start(b.Context(), host.Options{Name: "tool", Launch: r.PluginRunner(container.Spec{Image: shared.layout}), TempDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Call(b.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"x"}`), Timeout: time.Minute}, nil); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t))
		b.StopTimer()
		if err := p.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	report(b, times)
}

// BenchmarkColdStartFloor is the same program without a container.
func BenchmarkColdStartFloor(b *testing.B) {
	needs(b)
	var times []time.Duration
	for b.Loop() {
		t := time.Now()
		p, err := host.Start(b.Context(), host.Options{Name: "tool", Launch: sdktest.Launch([]string{shared.tool}, nil, "/")})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Call(b.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"x"}`), Timeout: time.Minute}, nil); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t))
		b.StopTimer()
		if err := p.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	report(b, times)
}

// BenchmarkWarmCall is a call of 1 KB to a plugin in a container. The goal is
// 0.4 ms at the middle.
func BenchmarkWarmCall(b *testing.B) {
	p := begin(b, newRuntime(b), container.Spec{})
	args := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	measured(b, func() {
		if _, err := p.Call(b.Context(), host.CallRequest{Tool: "echo", Args: args, Timeout: time.Minute}, nil); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkWarmCalls is sixteen callers of one plugin. The goal is 5,000 calls a
// second.
func BenchmarkWarmCalls(b *testing.B) {
	p := begin(b, newRuntime(b), container.Spec{Limits: container.Limits{CPU: 4000}})
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Call(b.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"x"}`), Timeout: time.Minute}, nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkWarmCallFloor is 1 KB there and back over a unix socket.
func BenchmarkWarmCallFloor(b *testing.B) {
	dir, err := os.MkdirTemp("/tmp", "cts-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			_, _ = c.Write(buf[:n])
		}
	}()
	c, err := (&net.Dialer{}).DialContext(b.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 1024)
	measured(b, func() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkProgramByCall is protocol Exec in a container that is held.
func BenchmarkProgramByCall(b *testing.B) {
	h := held(b, newRuntime(b), container.Spec{Argv: []string{"/tool", "echo"}})
	measured(b, func() {
		p, err := h.Start(b.Context(), container.Exec{Stdin: strings.NewReader("{}")})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	})
}

// BenchmarkProgramFresh is protocol Exec with a container per call.
func BenchmarkProgramFresh(b *testing.B) {
	r := newRuntime(b)
	measured(b, func() {
		p, err := r.Start(b.Context(), container.Spec{Image: shared.layout, Argv: []string{"/tool", "echo"}, Stdin: strings.NewReader("{}")})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	})
}
