package display

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCleanTextCannotSteerATerminal(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"plain":       {"harmless text stays", "a\n\tb ü 漢 👨‍👩‍👧", "a\n\tb ü 漢 👨‍👩‍👧"},
		"colour":      {"a colour is no text", "\x1b[1;31mred\x1b[0m", "red"},
		"title":       {"a title is not set", "\x1b]0;owned\abc", "bc"},
		"link":        {"a link leads nowhere", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"open string": {"an open sequence must not swallow what follows", "\x1b]0;title and text", "]0;title and text"},
		"next line":   {"a sequence ends with its line", "\x1b]0;a\nb", "]0;a\nb"},
		"long":        {"a long sequence was made to hide text", "\x1b]0;" + strings.Repeat("x", 300) + "\a!", "]0;" + strings.Repeat("x", 300) + "!"},
		"open csi":    {"an open sequence must not swallow what follows", "\x1b[12\nx", "[12\nx"},
		"two letters": {"a reset is no text", "a\x1bcb", "ab"},
		"end":         {"an escape may be the last byte", "a\x1b", "a"},
		"return":      {"a return would cover the start of the line", "safe\revil", "safe\nevil"},
		"dos line":    {"a DOS line end is a line end", "a\r\nb", "a\nb"},
		"backspace":   {"a backspace would take letters back", "a\b\x7fb\x00", "ab"},
		"c1":          {"C1 controls are escapes, too", "a\u009b31mb", "a31mb"},
		"bidi":        {"text may not be turned around", "x\u202etxt.exe\u202c\u2066y", "xtxt.exey"},
		"hidden":      {"text may not be hidden", "a\u200bb\ufeff\U000E0041c", "abc"},
		"no UTF-8":    {"a broken byte is shown as such", "a\x9bb\xff", "a\ufffdb\ufffd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Clean(c.in); got != c.want {
				t.Errorf("%s: Clean(%q) = %q, want %q", c.reason, c.in, got, c.want)
			}
		})
	}
}

func TestLineIsOneLine(t *testing.T) {
	if got, want := Line(" a\r\n\tb\u2028c\x1b[2J "), "a bc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a", "\x1b[31m", "\x1b]0;x\a", "\x1bP\x1b\\", "\u202e", "\x9b", "\r\n\r", "\x1b[\x1b[m", "\x1b]\x1b]\a\a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		if !utf8.ValidString(out) {
			t.Fatalf("Clean(%q) is no UTF-8: %q", in, out)
		}
		for _, r := range out {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("Clean(%q) holds %U", in, r)
			}
		}
		if again := Clean(out); again != out {
			t.Fatalf("Clean is not done after once: %q, %q", out, again)
		}
		if strings.ContainsAny(Line(in), "\n\t") {
			t.Fatalf("Line(%q) has several lines", in)
		}
	})
}
