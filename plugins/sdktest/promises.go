package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
)

// RunFixtures checks every promise of the protocol on a program that serves
// Fixtures.
func RunFixtures(t *testing.T, p Program) {
	t.Helper()
	for _, c := range []struct {
		name  string
		check func(*testing.T, Program)
	}{
		{"the call arrives whole", wholeCall},
		{"results and errors are told apart", outcomes},
		{"a deadline is a result with the output so far", deadline},
		{"cancel is quick and the program keeps running", cancels},
		{"a call that does not listen costs the program its life", deafness},
		{"output is capped and counted", capped},
		{"messages over 4 MiB pass", largeArguments},
		{"a panic is a result", panicked},
		{"calls run side by side", sideBySide},
		{"progress is thinned and short", thinProgress},
		{"stdout of a tool harms nobody", stdoutPollution},
		{"the environment is the declared one", exactEnvironment},
		{"stdin is empty", emptyStdin},
		{"a crash is named", crash},
		{"closing ends calls that run", closing},
		{"a tool asks a person and reads the history", asking},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.check(t, p) })
	}
	if p.Launch != nil {
		t.Run("no orphan is left", func(t *testing.T) { t.Parallel(); noOrphans(t, p) })
	}
}

func wholeCall(t *testing.T, p Program) {
	res := call(t, p.Start(t), host.CallRequest{
		Tool: "about", Args: []byte(`{}`), ID: "c1", Run: "r1", Agent: "a1", Session: "s1", Message: "m1",
		Workspace: "/w", Key: "k1", Timeout: time.Minute, MaxOutput: 1000,
	})
	if want := "c1 r1 a1 s1 m1 /w k1 1000 true"; res.Text != want {
		t.Errorf("text = %q, want %q", res.Text, want)
	}
	if res.ExitCode == nil || *res.ExitCode != 7 || res.Signal != "killed" || !res.Writes {
		t.Errorf("result = %+v, want exit code 7, signal killed, writes", res)
	}
}

func outcomes(t *testing.T, p Program) {
	h := p.Start(t)
	res := call(t, h, host.CallRequest{Tool: "echo", Args: []byte(`{"text":"a\u0000é"}`)})
	if res.Text != "a\x00é" || res.IsError || res.Title != "echo" || string(res.Metadata) != `{"length":4}` {
		t.Errorf("echo = %+v", res)
	}
	res = call(t, h, host.CallRequest{Tool: "fail", Args: []byte(`{"text":"no such file"}`)})
	wantCode(t, res, "tool")
	if !strings.Contains(res.Text, "no such file") {
		t.Errorf("text = %q, want the error", res.Text)
	}
	_, err := h.Call(t.Context(), host.CallRequest{Tool: "broken", Args: []byte(`{}`)}, nil)
	e, ok := errors.AsType[*host.Error](err)
	if !ok || e.Kind != host.KindTool || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("error = %v, want kind Tool with its text", err)
	}
}

func deadline(t *testing.T, p Program) {
	h := p.Start(t)
	res := call(t, h, host.CallRequest{Tool: "wait", Args: []byte(`{"ms":60000}`), Timeout: 300 * time.Millisecond})
	wantCode(t, res, "timeout")
	if !strings.HasPrefix(res.Text, "begun\n") {
		t.Errorf("text = %q, want the output so far", res.Text)
	}
	alive(t, h)
}

func alive(t *testing.T, h *host.Plugin) {
	t.Helper()
	if res := call(t, h, host.CallRequest{Tool: "echo", Args: []byte(`{"text":"still here"}`)}); res.Text != "still here" {
		t.Errorf("echo = %+v", res)
	}
}

// begun makes a call that runs until it is cancelled and returns when it has begun.
func begun(ctx context.Context, h *host.Plugin, tool string) (over chan error) {
	over = make(chan error, 1)
	running := make(chan struct{})
	var once sync.Once
	go func() {
		res, err := h.Call(ctx, host.CallRequest{Tool: tool, Args: []byte(`{"ms":60000}`)}, func(host.Event) {
			once.Do(func() { close(running) })
		})
		if err == nil && res != nil {
			err = errors.New("result " + res.Code + ": " + res.Text)
		}
		over <- err
	}()
	select {
	case <-running:
	case <-time.After(patience):
	}
	return over
}

func cancels(t *testing.T, p Program) {
	h := p.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := begun(ctx, h, "wait")
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	alive(t, h)
}

func deafness(t *testing.T, p Program) {
	h := p.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := begun(ctx, h, "deaf")
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	select {
	case <-h.Exited():
	case <-time.After(patience):
		t.Fatal("the program continues although its call does not listen")
	}
	_, err := h.Call(t.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":""}`)}, nil)
	if err == nil || !strings.Contains(err.Error(), "did not end when it was cancelled") {
		t.Errorf("next call: %v, want why the program is gone", err)
	}
}

func capped(t *testing.T, p Program) {
	h := p.Start(t)
	for _, c := range []struct {
		tool            string
		send, max, want int
	}{
		{"flood", 12 << 20, 0, 10 << 20},
		{"flood", 1 << 20, 1000, 1000},
		{"large", 12 << 20, 0, 10 << 20},
		{"large", 100, 10, 10},
		{"large", 100 << 10, 0, 100 << 10},
	} {
		args := []byte(`{"bytes":` + strconv.Itoa(c.send) + `}`)
		res := call(t, h, host.CallRequest{Tool: c.tool, Args: args, MaxOutput: int64(c.max)})
		total := c.send
		if c.tool == "flood" {
			total += len("end")
		}
		if len(res.Text) != c.want || res.Dropped != int64(total-c.want) {
			t.Errorf("%s of %d with limit %d: kept %d, dropped %d, want %d and %d", c.tool, c.send, c.max, len(res.Text), res.Dropped, c.want, total-c.want)
		}
	}
}

func withText(text string) []byte {
	b, _ := json.Marshal(textIn{text}) // a struct of one string is always JSON
	return b
}

func largeArguments(t *testing.T, p Program) {
	text := strings.Repeat("y", 6<<20)
	args := withText(text)
	if res := call(t, p.Start(t), host.CallRequest{Tool: "echo", Args: args}); res.Text != text {
		t.Errorf("echo of %d bytes returned %d", len(text), len(res.Text))
	}
}

func panicked(t *testing.T, p Program) {
	h := p.Start(t)
	res := call(t, h, host.CallRequest{Tool: "panics", Args: []byte(`{"text":"boom"}`)})
	wantCode(t, res, "tool")
	if !strings.Contains(res.Text, "boom") {
		t.Errorf("text = %q, want what it panicked with", res.Text)
	}
	alive(t, h)
}

// sideBySide would take 16 s one after the other.
func sideBySide(t *testing.T, p Program) {
	h := p.Start(t)
	start := time.Now()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if res := call(t, h, host.CallRequest{Tool: "wait", Args: []byte(`{"ms":1000}`)}); res.Text != "begun\nrested" {
				t.Errorf("text = %q", res.Text)
			}
		})
	}
	wg.Wait()
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("16 calls of 1 s took %v", d)
	}
}

func thinProgress(t *testing.T, p Program) {
	var got []string
	res, err := p.Start(t).Call(t.Context(), host.CallRequest{Tool: "ticks", Args: []byte(`{"ms":350}`)}, func(e host.Event) {
		got = append(got, e.Progress)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || len(got) > 10 {
		t.Errorf("%d progress events of %s in 350 ms", len(got), res.Text)
	}
	for _, s := range got {
		if len(s) > 4<<10 || strings.ContainsRune(s, '\uFFFD') {
			t.Errorf("progress of %d bytes: %q...", len(s), s[:20])
		}
	}
}

func stdoutPollution(t *testing.T, p Program) {
	var stderr bytes.Buffer
	h, err := p.open(t, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("1|1|unix|/nowhere|grpc ", 10<<10) // 230 KB, more than a pipe holds
	args := withText(line)
	if res := call(t, h, host.CallRequest{Tool: "prints", Args: args}); res.Text != "printed" {
		t.Errorf("result = %+v", res)
	}
	alive(t, h)
	shut(t, h)
	if !strings.Contains(stderr.String(), "on stderr") {
		t.Errorf("stderr has %d bytes and not what a program wrote there", stderr.Len())
	}
}

func exactEnvironment(t *testing.T, p Program) {
	t.Helper()
	p.Dir = t.TempDir()
	var e Environ
	res := call(t, p.Start(t), host.CallRequest{Tool: "environ", Args: []byte(`{}`)})
	if err := json.Unmarshal([]byte(res.Text), &e); err != nil {
		t.Fatalf("environ = %q: %v", res.Text, err)
	}
	want := slices.Sorted(slices.Values(p.Env))
	for who, got := range map[string][]string{"the program": e.Own, "a program it starts": e.Child} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("environment of %s = %q, want exactly %q", who, got, want)
		}
	}
}

func emptyStdin(t *testing.T, p Program) {
	res := call(t, p.Start(t), host.CallRequest{Tool: "stdin", Args: []byte(`{}`), Timeout: patience})
	if res.Text != "0 bytes, <nil>" {
		t.Errorf("stdin = %q, want an empty one", res.Text)
	}
}

func crash(t *testing.T, p Program) {
	h := p.Start(t)
	_, err := h.Call(t.Context(), host.CallRequest{Tool: "dies", Args: []byte(`{"text":"\u001b[31mlast words"}`)}, nil)
	e, ok := errors.AsType[*host.Error](err)
	if !ok || e.Kind != host.KindCrashed || !strings.Contains(err.Error(), "signal killed") || !slices.Contains(e.Stderr, "last words") {
		t.Errorf("error = %v, want a crash by a signal with its last words", err)
	}
}

func closing(t *testing.T, p Program) {
	h := p.Start(t)
	over := begun(t.Context(), h, "wait")
	shut(t, h)
	if err := <-over; err == nil {
		t.Error("the call went on although the program was closed")
	}
}

func asking(t *testing.T, p Program) {
	h := p.Start(t)
	req := host.CallRequest{Tool: "asks", Args: []byte(`{"question":"which?","options":["a","b"],"times":2}`)}
	wantCode(t, call(t, h, req), "tool") // no person is there
	req.Ask = func(_ context.Context, q host.Question) (string, error) { return q.Options[1], nil }
	if res := call(t, h, req); res.Text != "begun\nb\nb" {
		t.Errorf("asks = %+v", res)
	}
	req = host.CallRequest{Tool: "history", Args: []byte(`{"most":1}`)}
	wantCode(t, call(t, h, req), "tool")
	req.History = func(context.Context, int) ([]host.Message, error) {
		return []host.Message{{Role: "user", Text: "first"}, {Role: "tool", Text: "last"}}, nil
	}
	if res := call(t, h, req); res.Text != "tool 4 last\n" {
		t.Errorf("history = %+v", res)
	}
}

func noOrphans(t *testing.T, p Program) {
	h := p.Start(t)
	res := call(t, h, host.CallRequest{Tool: "daemon", Args: []byte(`{}`)})
	pid, err := strconv.Atoi(res.Text)
	if err != nil {
		t.Fatalf("daemon = %+v", res)
	}
	alive := p.Alive
	if alive == nil {
		alive = runs
	}
	if !alive(pid) {
		t.Fatalf("daemon %d does not run", pid)
	}
	shut(t, h)
	if alive(pid) {
		t.Errorf("daemon %d survived its program", pid)
	}
}
