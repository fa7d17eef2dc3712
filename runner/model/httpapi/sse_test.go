package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type readEvent struct {
	Name, Data string
	Cut        bool
}

func readEvents(r *sseReader) ([]readEvent, error) {
	var all []readEvent
	for {
		e, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, readEvent{e.Name, string(e.Data), e.Cut})
	}
}

func TestServerSentEvents(t *testing.T) {
	cases := map[string]struct {
		in   string
		want []readEvent
		junk string
	}{
		"one":               {"data: a\n\n", []readEvent{{"", "a", false}}, ""},
		"no space":          {"data:a\n\ndata:  b\n\n", []readEvent{{"", "a", false}, {"", " b", false}}, ""},
		"crlf":              {"data: a\r\n\r\ndata: b\r\n\r\n", []readEvent{{"", "a", false}, {"", "b", false}}, ""},
		"several lines":     {"data: a\ndata: b\ndata:\n\n", []readEvent{{"", "a\nb\n", false}}, ""},
		"comments":          {": ping\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []readEvent{{"", "a\nb", false}}, ""},
		"fields":            {"id: 1\nretry: 5\nevent: error\ndata: a\n\ndata: b\n\n", []readEvent{{"error", "a", false}, {"", "b", false}}, ""},
		"name without data": {"event: ping\n\ndata: a\n\n", []readEvent{{"", "a", false}}, ""},
		"no final blank":    {"data: a\n\ndata: b\n", []readEvent{{"", "a", false}, {"", "b", true}}, ""},
		"no final newline":  {"data: a\n\ndata: b", []readEvent{{"", "a", false}, {"", "b", true}}, ""},
		"cut in a name":     {"data: a\n\ndat", []readEvent{{"", "a", false}}, ""},
		"junk":              {"hello there\ndata: a\n\n<x>\n", []readEvent{{"", "a", false}}, "hello there"},
		"bare names":        {"data\n\nevent\nid\n", nil, ""},
		"many blanks":       {"\n\n\n\r\ndata: a\n\n\n\n", []readEvent{{"", "a", false}}, ""},
		"empty":             {"", nil, ""},
	}
	for name, c := range cases {
		for _, size := range []int{16, 4096} {
			r := newSSEReader(bufio.NewReaderSize(strings.NewReader(c.in), size), 1000)
			got, err := readEvents(r)
			if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, io.EOF) || string(r.Junk()) != c.junk {
				t.Errorf("%s: %v, junk %q (-want +got):\n%s", name, err, r.Junk(), d)
			}
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	cases := map[string]struct {
		in  string
		bad bool
	}{
		"long line":            {"data: " + strings.Repeat("x", 1001) + "\n\n", true},
		"long line, no end":    {"data: " + strings.Repeat("x", 5000), true},
		"long event":           {strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 11) + "\n", true},
		"long comment":         {":" + strings.Repeat("x", 5000) + "\n\n", true},
		"just within":          {"data: " + strings.Repeat("x", 994) + "\n\n", false},
		"many events are fine": {strings.Repeat("data: "+strings.Repeat("x", 100)+"\n\n", 1000), false},
	}
	for name, c := range cases {
		_, err := readEvents(newSSEReader(bufio.NewReaderSize(strings.NewReader(c.in), 64), 1000))
		if got := errors.Is(err, errTooLong); got != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsOfTheStreamAreKept(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), &failing{broken})
	got, err := readEvents(newSSEReader(bufio.NewReader(in), 1000))
	if len(got) != 1 || !errors.Is(err, broken) {
		t.Errorf("%v, %v", got, err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzSSE(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: c\nevent: e\ndata:b\ndata: c\n\n"), 16)
	f.Add([]byte("da"), 17)
	f.Add([]byte("data: [DONE]"), 64)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		size = 16 + (size&0xff)*4
		small, err1 := readEvents(newSSEReader(bufio.NewReaderSize(bytes.NewReader(in), 16), 300))
		large, err2 := readEvents(newSSEReader(bufio.NewReaderSize(bytes.NewReader(in), size), 300))
		if errors.Is(err1, errTooLong) != errors.Is(err2, errTooLong) && len(in) < 300 {
			t.Fatalf("the buffer's size changes the end: %v, %v", err1, err2)
		}
		if len(in) < 300 {
			if d := cmp.Diff(small, large); d != "" {
				t.Fatalf("the buffer's size changes the events: %s", d)
			}
		}
		for _, e := range large {
			if len(e.Data) > 300 || strings.HasPrefix(e.Data, "\r") && !bytes.Contains(in, []byte("\r")) {
				t.Fatalf("event %q", e.Data)
			}
		}
	})
}
