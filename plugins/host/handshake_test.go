package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

var handshakes = []string{
	"1|1|unix|/tmp/x|grpc\n", "1|1|unix|/tmp/x|grpc|\n", "1|1|unix|/tmp/x|grpc||true\r\n", "1|2|unix|/x|grpc\n",
	"", "\n", "|", "||||", "1|1|unix||grpc\n", "01|1|unix|x|grpc\n", "-1|1|unix|x|grpc\n", "1|1|tcp|127.0.0.1:1|grpc\n",
	"1|1|unix|/a\x00b|grpc\n", "1|1|unix|/x|netrpc\n", "99999999999999999999|1|unix|x|grpc", "\xff\xfe|\n", "hello\nworld\n",
	"1|1|unix|/tmp/x|grpc|MIIBkTCB+wIJAKHBfpegPjEOMA0GCSqGSIb3DQEBCwUAMA0xCzAJBgNVBAYTAlVTMIGfMA0GCSqGSIb3DQEB\n",
	strings.Repeat("x", 5000), strings.Repeat("1|1|unix|", 600) + "\n",
}

// FuzzHandshakeLine feeds what a program may print to the parser: whatever it
// accepts has the one form go-plugin may see.
func FuzzHandshakeLine(f *testing.F) {
	for _, s := range handshakes {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line, err := bufio.NewReaderSize(bytes.NewReader(b), maxLine).ReadSlice('\n')
		h, bad := parseHandshake(line, err)
		if bad != nil {
			if bad.Kind == "" || strings.ContainsAny(bad.Err.Error(), "\x1b\x00") {
				t.Errorf("%q: kind %q, text %q", b, bad.Kind, bad.Err)
			}
			return
		}
		if l := h.line(); strings.Count(l, "\n") != 1 || !strings.HasPrefix(l, "1|1|unix|") || !strings.HasSuffix(l, "|grpc\n") || strings.Count(l, "|") != 4 {
			t.Errorf("%q became %q", b, l)
		}
	})
}

// FuzzHandshakeWhole feeds it to everything: guard, go-plugin, connection.
func FuzzHandshakeWhole(f *testing.F) {
	for _, s := range []string{handshakes[1], handshakes[17], "hello\nworld\n", ""} { // each takes a while
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if len(dir) > 40 {
			dir, _ = os.MkdirTemp("/tmp", "hf-")
			defer os.RemoveAll(dir)
		}
		_, err := Start(context.Background(), Options{
			Name: "fuzz", TempDir: dir, StartTimeout: time.Second,
			Launch: func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
				return &printer{out: bytes.NewReader(b), done: make(chan struct{})}, nil
			},
		})
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%q: error %v, want an *Error", b, err)
		}
	})
}

// printer is a program that prints and then waits to be killed.
type printer struct {
	out    io.Reader
	done   chan struct{}
	killed sync.Once
}

func (p *printer) Start(context.Context) error     { return nil }
func (p *printer) Stdout() io.ReadCloser           { return io.NopCloser(p.out) }
func (p *printer) Stderr() io.ReadCloser           { return io.NopCloser(strings.NewReader("")) }
func (p *printer) Name() string                    { return "printer" }
func (p *printer) ID() string                      { return "1" }
func (p *printer) Wait(context.Context) error      { <-p.done; return errors.New("signal killed") }
func (p *printer) Diagnose(context.Context) string { return "" }

func (p *printer) Kill(context.Context) error {
	p.killed.Do(func() { close(p.done) })
	return nil
}

func (p *printer) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

func (p *printer) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

func TestStderrKeepsTheLastLinesReadable(t *testing.T) {
	tail := &stderrTail{ended: make(chan struct{})}
	for i := range 50 {
		_, _ = io.WriteString(tail, strings.Repeat("x", i)+"\n")
	}
	_, _ = io.WriteString(tail, "\x1b[31mred\x1b[0m \x1b]0;title\x07\u202etext\x00\ttab\r\n\n   \n")
	_, _ = io.WriteString(tail, strings.Repeat("long", 1000)+"\nun")
	_, _ = io.WriteString(tail, "finished \xff")
	got := tail.lines()
	if len(got) != tailLines {
		t.Fatalf("%d lines, want %d", len(got), tailLines)
	}
	if got[17] != "red text tab" {
		t.Errorf("line = %q", got[17])
	}
	if r := []rune(got[18]); len(r) != tailWidth+1 {
		t.Errorf("long line has %d characters", len(r))
	}
	if got[19] != "unfinished \uFFFD" {
		t.Errorf("last line = %q", got[19])
	}
}

func TestTailAndHeadCutBetweenCharacters(t *testing.T) {
	if got := tail("aéé", 3); got != "é" {
		t.Errorf("tail = %q", got)
	}
	if got := head("éé", 3); got != "é" {
		t.Errorf("head = %q", got)
	}
}

func TestATimeoutIsNeverRoundedToNone(t *testing.T) {
	for d, want := range map[time.Duration]int64{-1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := millis(d); got != want {
			t.Errorf("millis(%v) = %d, want %d", d, got, want)
		}
	}
}
