package host_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
)

// TestACancelledCallReturnsAtOnce: a person who gives up must not wait for a tool that
// listens. The waits for one that does not are longer than the test.
func TestACancelledCallReturnsAtOnce(t *testing.T) {
	p := start(t, exe(t), "serve-fixtures")
	p.SetWaits(time.Hour, time.Hour)
	for range 15 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		returned := make(chan error, 1)
		go func() {
			_, err := p.Call(ctx, host.CallRequest{Tool: "wait", Args: []byte(`{"ms":3600000}`)}, func(host.Event) { cancel() })
			returned <- err
		}()
		select {
		case err := <-returned:
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error = %v", err)
			}
		case <-time.After(patience):
			t.Fatal("a cancelled call does not return")
		}
	}
}

func TestARequestThatIsTooLargeIsRefusedAndHarmsNobody(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	_, err := p.Call(t.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"` + strings.Repeat("x", 65<<20) + `"}`)}, nil)
	e, ok := errors.AsType[*host.Error](err)
	if !ok || e.Kind != host.KindProtocol || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error = %v, want that the message was too large", err)
	}
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"` + strings.Repeat("x", 5<<20) + `"}`)}, nil)
	if err != nil || len(res.Text) != 5<<20 {
		t.Errorf("a request of 5 MiB after it: %v", err)
	}
}

func TestACrashLeavesNoFolder(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	p, err := host.Start(t.Context(), options(t, dir, exe(t), "serve-fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(t.Context(), host.CallRequest{Tool: "dies", Args: []byte(`{"text":""}`)}, nil); err == nil {
		t.Fatal("it did not die")
	}
	deadline := time.Now().Add(patience)
	for {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v", left)
		}
		<-time.After(5 * time.Millisecond)
	}
	closeNow(t, p)
}

// BenchmarkCalls is how many calls a program answers when many ask at once.
func BenchmarkCalls(b *testing.B) {
	p := start(b, exe(b), "serve-fixtures")
	args := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	call := func() {
		if res, err := p.Call(context.Background(), host.CallRequest{Tool: "echo", Args: args, Timeout: time.Minute}, nil); err != nil || len(res.Text) != 1000 {
			b.Error(err)
		}
	}
	b.Run("16 callers", func(b *testing.B) {
		var wg sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(b.N))
		for range 16 {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					call()
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	})
}

// BenchmarkFlood is the way of 10 MiB of output.
func BenchmarkFlood(b *testing.B) {
	p := start(b, exe(b), "serve-fixtures")
	b.SetBytes(10 << 20)
	for b.Loop() {
		if res, err := p.Call(context.Background(), host.CallRequest{Tool: "flood", Args: []byte(`{"bytes":10485760}`)}, nil); err != nil || len(res.Text) != 10<<20 {
			b.Error(err)
		}
	}
}
