package files

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzFind holds what every replacement must keep: places in order, within the
// text, not overlapping, and nothing outside them changed.
func FuzzFind(f *testing.F) {
	f.Add([]byte("a\nb\r\nc"), "b\nc", "x")
	f.Add([]byte("\tif x {\n\t\ty\n\t}\n"), "if x {\n\ty\n}\n", "z\n")
	f.Add([]byte("a  \n\n\nb"), "a\n\n\nb", "")
	f.Add([]byte("\xff\xfe\n"), "\n", "\r\n")
	f.Fuzz(func(t *testing.T, text []byte, before, after string) {
		if before == "" || len(text) > 1<<14 {
			return
		}
		how, places := find(text, before, after)
		if (how == "") != (len(places) == 0) {
			t.Fatalf("rule %q with %d places", how, len(places))
		}
		at := 0
		for _, p := range places {
			if p.start < at || p.end < p.start || p.end > len(text) {
				t.Fatalf("place %+v after %d in %d bytes", p, at, len(text))
			}
			at = p.end
		}
		got := replace(text, places)
		slices.Reverse(places)
		undone := slices.Clone(got)
		grown := len(got) - len(text)
		for _, p := range places {
			grown -= len(p.with) - (p.end - p.start)
			undone = slices.Replace(undone, p.start+grown, p.start+grown+len(p.with), text[p.start:p.end]...)
		}
		if !bytes.Equal(undone, text) {
			t.Errorf("something else changed: %q became %q", text, got)
		}
	})
}

// FuzzRel holds that no path leaves the workspace by its words.
func FuzzRel(f *testing.F) {
	for _, s := range []string{"a", "/w/a", "/w", "..", "a/../../b", "/w/../x", "/wx", "//w//a", "./.", "a\x00"} {
		f.Add(s)
	}
	w := &workspace{dir: "/w", real: "/real/w"}
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.rel(name)
		if err != nil {
			return
		}
		if rel == "" || strings.HasPrefix(rel, "/") || rel == ".." || strings.HasPrefix(rel, "../") || strings.Contains(rel, "/../") || strings.ContainsRune(rel, 0) {
			t.Errorf("%q became %q", name, rel)
		}
	})
}
