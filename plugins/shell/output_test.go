package shell

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentctl.dev/agentctl/plugins/sdk"
)

// all is what a call shows of an output.
func all(o *output) string { return string(bytes.Join(o.pieces(), nil)) }

func TestOutputKeepsHeadAndTail(t *testing.T) {
	o := newOutput(4096 + reserve)
	var want strings.Builder
	for i := range 2000 {
		line := fmt.Sprintf("line %04d\n", i)
		want.WriteString(line)
		o.write([]byte(line))
	}
	got := all(o)
	head, tail, ok := strings.Cut(got, "\n(15910 bytes left out)\n")
	if !ok {
		t.Fatalf("got %q", got)
	}
	if !strings.HasPrefix(want.String(), head+"\n") || !strings.HasSuffix(want.String(), tail) {
		t.Errorf("not the beginning and the end: %q", got)
	}
	if len(head)*2 > len(tail) || len(got) > 4096+reserve {
		t.Errorf("head %d, tail %d bytes", len(head), len(tail))
	}
}

func TestOutputCutsAtCharacters(t *testing.T) {
	for shift := range 4 {
		o := newOutput(2000)
		o.write([]byte(strings.Repeat("x", shift)))
		for range 3000 {
			for _, b := range []byte("😀") { // one byte at a time
				o.write([]byte{b})
			}
		}
		if got := all(o); strings.ContainsRune(got, utf8.RuneError) || len(got) > 2000 || !strings.Contains(got, "left out") {
			t.Errorf("shift %d: %d bytes, cut within a character: %q", shift, len(got), got)
		}
		if got := o.recent(); strings.ContainsRune(got, utf8.RuneError) || len(got) > maxRecent+3 {
			t.Errorf("shift %d: progress was cut within a character", shift)
		}
	}
}

func TestOutputThatEndsInACharacterIsShownWithoutIt(t *testing.T) {
	o := newOutput(0)
	o.write([]byte("ab\xf0\x9f"))
	if got := o.recent(); got != "ab" {
		t.Errorf("got %q", got)
	}
	o.write([]byte("\x98\x80"))
	if got := o.recent(); got != "ab😀" {
		t.Errorf("got %q", got)
	}
}

func TestRecentIsTheEnd(t *testing.T) {
	o := newOutput(20000)
	for i := range 10000 {
		fmt.Fprintf(writer{o}, "%d\n", i)
		if i%999 == 0 {
			if got := o.recent(); !strings.HasSuffix(got, fmt.Sprintf("%d\n", i)) || len(got) > maxRecent {
				t.Fatalf("after %d: %d bytes, %q", i, len(got), got[max(0, len(got)-20):])
			}
		}
	}
}

func TestRecentNeverShowsBinary(t *testing.T) {
	o := newOutput(0)
	o.write([]byte{0, 1, 2, 3})
	if got := o.recent(); got != "(binary output)" {
		t.Errorf("got %q", got)
	}
}

type writer struct{ o *output }

func (w writer) Write(p []byte) (int, error) { w.o.write(p); return len(p), nil }

func TestTheCallersLimitHolds(t *testing.T) {
	for _, limit := range []int64{1, 100, 2000, 100_000} {
		call := &sdk.Call{Workspace: t.TempDir(), MaxOutput: limit}
		res := runIn(t.Context(), t, call, map[string]any{"command": "seq 100000"})
		if n := int64(len(call.Written() + res.Text)); n > max(limit, 64) {
			t.Errorf("limit %d: got %d bytes", limit, n)
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("plain\ntext"), 3, int64(100))
	f.Add([]byte("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 1, int64(6))
	f.Add([]byte{0, 0xff, 0xfe}, 2, int64(1))
	f.Add(bytes.Repeat([]byte("\xe9\n"), 5000), 7, int64(2000))
	f.Fuzz(func(t *testing.T, data []byte, step int, limit int64) {
		if step < 1 || limit < 0 || len(data) > 1<<16 {
			return
		}
		o := newOutput(limit)
		for p := data; len(p) > 0; {
			n := min(step, len(p))
			o.write(p[:n])
			p = p[n:]
		}
		got := all(o)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("not text: %q", got)
		}
		if !utf8.ValidString(o.recent()) {
			t.Errorf("recent is not text: %q", o.recent())
		}
		room := o.headCap + o.tailCap
		if o.written() != int64(len(data)) || len(got) > room+100 && int64(len(data)) > int64(room) {
			t.Errorf("written %d of %d, shown %d of room %d", o.written(), len(data), len(got), room)
		}
	})
}
