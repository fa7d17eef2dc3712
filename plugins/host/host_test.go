package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// shortDir is a temporary folder whose path leaves room for a socket's.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ht-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

func exe(t testing.TB) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// options start a command whose socket folder is sockets.
func options(t testing.TB, sockets string, command ...string) host.Options {
	t.Helper()
	return host.Options{
		Name: "test", TempDir: sockets, StartTimeout: patience,
		Launch: sdktest.Launch(command, []string{"PATH=/usr/bin:/bin"}, "/"),
	}
}

func start(t testing.TB, command ...string) *host.Plugin {
	t.Helper()
	p, err := host.Start(context.Background(), options(t, shortDir(t), command...))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { closeNow(t, p) })
	return p
}

func closeNow(t testing.TB, p *host.Plugin) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestProgramsThatAreNoPluginsAreNamedAsSuch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		script  string
		timeout time.Duration
		kind    host.Kind
		want    []string
	}{
		"says something else": {
			reason: "the line is quoted without what it does to a terminal",
			script: `printf 'hello \033[31mworld\n'; sleep 60`, kind: host.KindNotPlugin, want: []string{"not a plugin program", `"hello world"`},
		},
		"exits at once": {
			reason: "exit code and stderr say more than the silence",
			script: `echo 'cannot open /etc/x' >&2; exit 3`, kind: host.KindNotPlugin, want: []string{"ended without a word", "exit code 3", "cannot open /etc/x"},
		},
		"prints its usage and exits": {
			reason: "both are told",
			script: `echo usage: x; exit 64`, kind: host.KindNotPlugin, want: []string{"usage: x", "exit code 64"},
		},
		"killed before a word": {
			reason: "a signal is named",
			script: `kill -SEGV $$`, kind: host.KindNotPlugin, want: []string{"signal"},
		},
		"prints for ever": {
			reason: "endless output is drained and does not fill memory",
			script: `exec yes`, kind: host.KindNotPlugin, want: []string{`"y"`},
		},
		"one endless line": {
			reason: "a line over 64 KiB would stop go-plugin's scanner",
			script: `exec tr '\0' x </dev/zero`, kind: host.KindNotPlugin, want: []string{"a line over 4096 bytes"},
		},
		"says nothing": {
			reason: "the deadline ends it", timeout: 10 * time.Second,
			script: `echo starting >&2; exec sleep 60`, kind: host.KindTimeout, want: []string{"not ready to be called within 10s", "starting"},
		},
		"half a line and silence": {
			reason: "the deadline ends it", timeout: 300 * time.Millisecond,
			script: `printf '1|1|un'; exec sleep 60`, kind: host.KindTimeout, want: []string{"not ready to be called within 300ms"},
		},
		"dies in the handshake": {
			reason: "half a line is no handshake",
			script: `printf '1|1|un'; exit 1`, kind: host.KindNotPlugin, want: []string{`"1|1|un"`, "exit code 1"},
		},
		"older go-plugin": {
			reason: "the core version is another",
			script: `echo '2|1|unix|/x|grpc'; sleep 60`, kind: host.KindVersion, want: []string{"version 2 of go-plugin's handshake", "rebuild"},
		},
		"newer protocol": {
			reason: "both versions are named",
			script: `echo '1|9|unix|/x|grpc'; sleep 60`, kind: host.KindVersion, want: []string{"version 9 of the tool protocol, this agentctl 1"},
		},
		"listens on TCP": {
			reason: "anybody on the machine could answer there",
			script: `echo '1|1|tcp|127.0.0.1:1234|grpc'; sleep 60`, kind: host.KindHandshake, want: []string{`network "tcp"`},
		},
		"speaks net/rpc": {
			reason: "only gRPC is allowed",
			script: `echo '1|1|unix|/x|netrpc'; sleep 60`, kind: host.KindHandshake, want: []string{`"netrpc"`},
		},
		"no protocol": {
			reason: "go-plugin would take it for net/rpc",
			script: `echo '1|1|unix|/x'; sleep 60`, kind: host.KindNotPlugin, want: []string{"not a plugin program"},
		},
		"a socket elsewhere": {
			reason: "the address is held against the folder it was given",
			script: `echo '1|1|unix|/run/docker.sock|grpc'; sleep 60`, kind: host.KindHandshake, want: []string{"/run/docker.sock"},
		},
		"a certificate": {
			reason: "go-plugin panics on one it did not ask for; ours never sees it",
			script: `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/none|grpc|MIIBkTCB+wIJAKHBfpegPjEOMA0GCSqGSIb3DQEBCwUAMA0xCzAJBgNVBAYTAlVT"; sleep 60`,
			kind:   host.KindCrashed, want: []string{"connection to it was lost"},
		},
		"nobody listens": {
			reason: "the socket does not exist",
			script: `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/none|grpc"; sleep 60`, kind: host.KindCrashed, want: []string{"connection to it was lost"},
		},
		"dies after the handshake": {
			reason: "the exit code is named",
			script: `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/none|grpc"; exit 4`, kind: host.KindCrashed, want: []string{"exit code 4"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			opts := options(t, dir, "/bin/sh", "-c", c.script)
			if c.timeout > 0 {
				opts.StartTimeout = c.timeout
			}
			p, err := host.Start(t.Context(), opts)
			if err == nil {
				closeNow(t, p)
				t.Fatalf("started; %s", c.reason)
			}
			e, ok := errors.AsType[*host.Error](err)
			if !ok || e.Kind != c.kind {
				t.Errorf("error = %v (%+v), want kind %s: %s", err, e, c.kind, c.reason)
			}
			for _, w := range append(c.want, "plugin test: ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error = %q, want %q in it: %s", err, w, c.reason)
				}
			}
			if strings.ContainsRune(err.Error(), '\x1b') {
				t.Errorf("error holds an escape sequence: %q", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("socket folder left behind: %v", left)
			}
		})
	}
}

func TestBrokenDescriptionsAreRefused(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"no tools":         "describes 0 tools",
		"too many tools":   "describes 300 tools",
		"bad name":         `named "../x"`,
		"same name":        "two tools",
		"long description": "description",
		"long schema":      "schema is over",
		"schema is a list": "not a JSON object",
		"schema is null":   "not a JSON object",
		"no service":       "does not speak the tool protocol",
		"silent describe":  "not ready to be called within",
		"huge describe":    "too large",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			opts := options(t, shortDir(t), exe(t), "serve-rogue", how)
			if how == "silent describe" {
				opts.StartTimeout = time.Second
			}
			p, err := host.Start(t.Context(), opts)
			if err == nil {
				closeNow(t, p)
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q in it", err, want)
			}
		})
	}
}

func TestCallsThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		kind host.Kind
		want string
		dead bool
	}{
		"no result":               {host.KindProtocol, "without a result", true},
		"two results":             {host.KindProtocol, "after the result", true},
		"output after the result": {host.KindProtocol, "after the result", true},
		"huge result":             {host.KindProtocol, "too large", false},
		"status":                  {host.KindTool, "set TOKEN", false},
		"odd status":              {host.KindProtocol, "PermissionDenied", false},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := start(t, exe(t), "serve-rogue", how)
			res, err := p.Call(t.Context(), host.CallRequest{Tool: "t", Args: []byte(`{}`)}, nil)
			e, ok := errors.AsType[*host.Error](err)
			if !ok || e.Kind != c.kind || !strings.Contains(err.Error(), c.want) || e.Plugin != "test" {
				t.Errorf("result %+v, error %v (kind %v), want kind %s with %q", res, err, e, c.kind, c.want)
			}
			if !c.dead {
				return
			}
			select {
			case <-p.Exited():
			case <-time.After(patience):
				t.Error("the program keeps running after it broke the protocol")
			}
		})
	}
}

func TestOddResultsAreTakenWithCare(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-rogue", "empty events")
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "t"}, nil)
	if err != nil || res.IsError || res.Text != "" {
		t.Errorf("empty events: %+v, %v", res, err)
	}
	p = start(t, exe(t), "serve-rogue", "hostile result")
	res, err = p.Call(t.Context(), host.CallRequest{Tool: "t", MaxOutput: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "éé\uFFFD" || res.Code != "tool" || len(res.Title) != 1024 || res.Metadata != nil || res.Dropped != 16<<20-5 || res.Signal != "x" {
		t.Errorf("result = %q code %q title %d metadata %q dropped %d signal %q", res.Text, res.Code, len(res.Title), res.Metadata, res.Dropped, res.Signal)
	}
	if n := len(res.Attachments); n != 16 {
		t.Errorf("%d of 1001 attachments are kept", n)
	}
	if a := res.Attachments[1]; strings.ContainsAny(a.Name+a.Type, "\x1b\x00") || len(a.Name) > 1000 {
		t.Errorf("an attachment is called %.40q... (%d bytes), of type %q", a.Name, len(a.Name), a.Type)
	}
}

func TestTimeoutOfADeafProgramIsAResultAndItsEnd(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-rogue", "endless output")
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "t", Timeout: time.Millisecond, MaxOutput: 100}, nil)
	if err != nil || res.Code != "timeout" || !res.IsError || len(res.Text) < 100 || !strings.Contains(res.Text, "timed out after 1ms") || res.Dropped == 0 {
		t.Fatalf("result = %+v, %v, want a timeout with the output so far", res, err)
	}
}

func TestACancelledCallThatNeverEndsEndsItsProgram(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"never", "never, no cancel"} {
		p := start(t, exe(t), "serve-rogue", how)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := p.Call(ctx, host.CallRequest{Tool: "t"}, func(host.Event) { cancel() }) // it has begun
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", how, err)
		}
		if how != "never" {
			continue // a program without Cancel gets the reset only, and continues
		}
		select {
		case <-p.Exited():
		case <-time.After(patience):
			t.Error("the program keeps running")
		}
	}
}

func TestACancelledCallKeepsItsOutput(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		command []string
		tool    string
		text    string
		code    string
		err     error
		asIs    time.Duration // else as it is
		letGo   time.Duration
	}{
		"listens":       {"the tool's own end counts", []string{"serve-fixtures"}, "wait", "begun\ncontext canceled", "cancelled", context.Canceled, 0, patience},
		"does not":      {"the SDK answers for it", []string{"serve-fixtures"}, "deaf", "begun\ncancelled", "cancelled", context.Canceled, 0, patience},
		"says nothing":  {"what watchers saw is all there is", []string{"serve-rogue", "half, then never"}, "t", "half", "cancelled", context.Canceled, 0, 0},
		"had done it":   {"its work was done before it heard", []string{"serve-rogue", "ends as it is cancelled"}, "t", "half and all", "", nil, patience, patience},
		"went on after": {"it was told to stop and did more", []string{"serve-rogue", "ends late"}, "t", "half and all", "cancelled", context.Canceled, 0, patience},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append([]string{exe(t)}, c.command...)...)
			p.SetWaits(c.asIs, c.letGo)
			ctx, cancel := context.WithCancel(t.Context())
			var once sync.Once
			res, err := p.Call(ctx, host.CallRequest{Tool: c.tool, Args: []byte(`{"ms":60000}`)}, func(host.Event) {
				once.Do(cancel)
			})
			if !errors.Is(err, c.err) || res == nil || res.Text != c.text || res.Code != c.code || res.IsError != (c.code != "") {
				t.Errorf("%s: %+v, %v", c.reason, res, err)
			}
		})
	}
}

func TestAFrozenProgramHangsNobody(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures", t.Name())
	pid := pidOf(t, t.Name())
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	large := []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`) // more than flow control lets through
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Call(ctx, host.CallRequest{Tool: "echo", Args: large}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("call = %v, want the deadline", err)
	}
	began := time.Now()
	closeNow(t, p)
	if d := time.Since(began); d > patience {
		t.Errorf("Close took %v", d)
	}
}

// pidOf finds the child with this argument. The kernel's list of children may leave some
// out while others end: it is read until the child is in it.
func pidOf(t *testing.T, arg string) int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		tasks, _ := filepath.Glob("/proc/self/task/*/children")
		for _, f := range tasks {
			b, _ := os.ReadFile(f)
			for c := range strings.FieldsSeq(string(b)) {
				cmd, _ := os.ReadFile("/proc/" + c + "/cmdline")
				if strings.Contains(string(cmd), "\x00"+arg+"\x00") {
					pid, _ := strconv.Atoi(c)
					return pid
				}
			}
		}
	}
	t.Fatalf("no child has the argument %s", arg)
	return 0
}

func TestStartCanBeCancelled(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := host.Start(ctx, options(t, dir, "/bin/sleep", "600"))
	e, ok := errors.AsType[*host.Error](err)
	if !ok || e.Kind != host.KindCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want kind Cancelled", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("socket folder left behind: %v", left)
	}
}

func TestStartNeedsAProgramThatStarts(t *testing.T) {
	notExecutable := filepath.Join(shortDir(t), "x")
	if err := os.WriteFile(notExecutable, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/no/such/program", notExecutable, "/"} {
		_, err := host.Start(t.Context(), options(t, shortDir(t), path))
		if e, ok := errors.AsType[*host.Error](err); !ok || e.Kind != host.KindStart {
			t.Errorf("%s: %v, want kind Start", path, err)
		}
	}
	if _, err := host.Start(t.Context(), host.Options{Name: "x"}); err == nil {
		t.Error("started without a way to launch")
	}
	opts := options(t, filepath.Join("/tmp", strings.Repeat("d", 90)), "/bin/true")
	if _, err := host.Start(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "too long for a unix socket") {
		t.Errorf("long socket folder: %v", err)
	}
	opts.TempDir = "/no/such/folder"
	if _, err := host.Start(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing socket folder: %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	p, err := host.Start(t.Context(), options(t, dir, exe(t), "serve-fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	sockets, _ := filepath.Glob(dir + "/*/*/*")
	if len(sockets) > 0 {
		t.Errorf("the socket can still be found: %v", sockets)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm()&0o077 != 0 {
		t.Errorf("socket folder: %v, %v, want it closed to others", fi.Mode(), err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { closeNow(t, p) })
	}
	wg.Wait()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	_, err = p.Call(t.Context(), host.CallRequest{Tool: "echo"}, nil)
	if e, ok := errors.AsType[*host.Error](err); !ok || e.Kind != host.KindClosed {
		t.Errorf("call after Close: %v", err)
	}
	if _, err := p.Describe(t.Context()); err == nil {
		t.Error("Describe after Close succeeded")
	}
}

func TestDescribeTellsWhatStartLearned(t *testing.T) {
	p := start(t, exe(t), "serve-fixtures")
	got, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, p.Tools(), func(a, b host.ToolInfo) bool { return a.Name == b.Name }) || len(got) != len(sdktest.Fixtures()) {
		t.Errorf("describe = %v, tools = %v", got, p.Tools())
	}
}

func TestAProgramEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	p.DropConnection()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Error("the program outlives its caller")
	}
}

func BenchmarkColdStart(b *testing.B) {
	dir := shortDir(b)
	for b.Loop() {
		p, err := host.Start(context.Background(), options(b, dir, exe(b), "serve-fixtures"))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		closeNow(b, p)
		b.StartTimer()
	}
}

func BenchmarkWarmCall1KB(b *testing.B) {
	p := start(b, exe(b), "serve-fixtures")
	args := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	var times []time.Duration
	for b.Loop() {
		t := time.Now()
		if _, err := p.Call(context.Background(), host.CallRequest{Tool: "echo", Args: args, Timeout: time.Minute}, nil); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
}

func BenchmarkClose(b *testing.B) {
	dir := shortDir(b)
	for b.Loop() {
		b.StopTimer()
		p, err := host.Start(context.Background(), options(b, dir, exe(b), "serve-fixtures"))
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		closeNow(b, p)
	}
}
