package tool

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		window      Window
		text        string
		first, last string
		left        bool
	}{
		"fits":           {"what fits is kept", Window{Bytes: 100, Lines: 10}, "a\nb\n", "a\n", "b\n", false},
		"head, lines":    {"the head is whole lines", Window{Bytes: 1000, Lines: 2, KeepHead: true}, numbered(9), "line 1\n", "line 2", true},
		"head, bytes":    {"bytes count too", Window{Bytes: 15, Lines: 100, KeepHead: true}, numbered(9), "line 1\n", "line 2", true},
		"tail":           {"errors come last", Window{Bytes: 1000, Lines: 4}, numbered(100), "line 1\n", "line 100\n", true},
		"one long line":  {"a long line is cut inside", Window{Bytes: 100, Lines: 10}, strings.Repeat("x", 10_000), "x", "x", true},
		"one long, head": {"at a character", Window{Bytes: 101, Lines: 10, KeepHead: true}, strings.Repeat("ü", 10_000), "ü", "ü", true},
		"long in tail":   {"at a character", Window{Bytes: 101, Lines: 10}, strings.Repeat("ü", 10_000), "ü", "ü", true},
	} {
		t.Run(name, func(t *testing.T) {
			shown, lines, bytes := c.window.Cut(c.text)
			if !strings.HasPrefix(shown, c.first) || !strings.HasSuffix(shown, c.last) {
				t.Errorf("%s: got %q", c.reason, shown)
			}
			if (bytes > 0) != c.left || c.left && lines == 0 && strings.Contains(c.text, "\n") {
				t.Errorf("%s: %d lines, %d bytes left out", c.reason, lines, bytes)
			}
			if !utf8.ValidString(shown) {
				t.Errorf("%s: cut inside a character: %q", c.reason, shown)
			}
		})
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("a\nb\nc", 3, 2, true)
	f.Add(strings.Repeat("ü\n", 50), 17, 5, false)
	f.Fuzz(func(t *testing.T, text string, bytes, lines int, keepHead bool) {
		if bytes < 8 || bytes > 1<<16 || lines < 1 || lines > 1<<12 || !utf8.ValidString(text) {
			return
		}
		shown, leftLines, leftBytes := Window{bytes, lines, keepHead}.Cut(text)
		const marker = 60 // the line with how much was left out
		if len(shown) > bytes+marker {
			t.Errorf("%d bytes of a window of %d", len(shown), bytes)
		}
		if leftBytes < 0 || leftLines < 0 || (leftBytes == 0) != (shown == text) {
			t.Errorf("%d lines, %d bytes left out of %q: %q", leftLines, leftBytes, text, shown)
		}
		if !utf8.ValidString(shown) {
			t.Errorf("%q is cut inside a character", shown)
		}
	})
}

func TestFooterTellsWhatAPersonWouldSee(t *testing.T) {
	zero, one := 0, 1
	for want, got := range map[string]string{
		"":                     footer(nil, "", time.Second, false, 0, 0, ""),
		"[exit code 0 · 12ms]": footer(&zero, "", 12*time.Millisecond, false, 0, 0, ""),
		"[signal killed · 2s]": footer(nil, "killed", 2*time.Second, false, 0, 0, ""),
		"[timed out · 1s]":     footer(nil, "", time.Second, true, 0, 0, ""),
		`[exit code 1 · 1s · 3 lines, 40 bytes left out; read the rest with path "blob:sha256:00"]`: footer(&one, "", time.Second, false, 3, 40, "sha256:00"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
