package safetext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNothingIsHiddenOrObeyed(t *testing.T) {
	cases := map[string]struct {
		reason, in string
		keep       Keep
		want       string
	}{
		"plain":          {"harmless text stays", "a\n\tb ü 漢 e\u0301", Prose, "a\n\tb ü 漢 e\u0301"},
		"line feed":      {"a line feed is named where one line is wanted", "a\nb", 0, "a<U+000A>b"},
		"tab":            {"a tab is named where a word must be read exactly", "a\tb", Lines, "a<U+0009>b"},
		"osc":            {"a title and what it hides is seen", "a \x1b]0;rm -rf /\a b", Prose, "a <U+001B>]0;rm -rf /<U+0007> b"},
		"dcs":            {"a device control string is seen", "\x1bPq#\x1b\\x", Prose, "<U+001B>Pq#<U+001B>\\x"},
		"csi":            {"a cursor movement is seen", "safe\x1b[2K\x1b[1Gevil", Prose, "safe<U+001B>[2K<U+001B>[1Gevil"},
		"colour":         {"a colour can hide text: it is not obeyed", "\x1b[8mrm\x1b[0m", Prose, "<U+001B>[8mrm<U+001B>[0m"},
		"c1":             {"8-bit controls are escapes, too", "a\u009b31mb\u009dx\u009c", Prose, "a<U+009B>31mb<U+009D>x<U+009C>"},
		"return":         {"a return would cover the start of the line", "safe\revil", Prose, "safe<U+000D>evil"},
		"backspace":      {"a backspace would take letters back", "a\b\x7fb\x00", Prose, "a<U+0008><U+007F>b<U+0000>"},
		"bidi":           {"text may not be turned around", "x\u202etxt.exe\u202c\u2066y\u061c", Prose, "x<U+202E>txt.exe<U+202C><U+2066>y<U+061C>"},
		"zero width":     {"what has no width is named", "a\u200bb\ufeff\u2060\u00ad\u180e", Prose, "a<U+200B>b<U+FEFF><U+2060><U+00AD><U+180E>"},
		"tags":           {"tag characters carry a hidden text", "a\U000E0041b", Prose, "a<U+E0041>b"},
		"separators":     {"other line separators are no line feeds", "a\u2028b\u2029c", Prose, "a<U+2028>b<U+2029>c"},
		"fillers":        {"letters without a shape", "a\u3164b\u115fc\u2800", Prose, "a<U+3164>b<U+115F>c<U+2800>"},
		"no UTF-8":       {"a broken byte is named", "a\x9bb\xff", Prose, "a<byte 9B>b<byte FF>"},
		"private":        {"private characters have no known shape", "a\ue000", Prose, "a<U+E000>"},
		"spaces":         {"spaces of typography stay in prose", "10\u202f%\u00a0\u3000", Prose, "10\u202f%\u00a0\u3000"},
		"spaces, strict": {"a shell does not take them for spaces", "rm\u00a0x", Lines, "rm<U+00A0>x"},
		"family":         {"emoji stay whole in prose", "👨‍👩‍👧 ⚠️ ❤️‍🔥 1️⃣ 👍🏽", Prose, "👨‍👩‍👧 ⚠️ ❤️‍🔥 1️⃣ 👍🏽"},
		"family, strict": {"an emoji of several parts is named where words are read exactly", "👨‍👩", Lines, "👨<U+200D>👩"},
		"persian":        {"a script that needs the non-joiner keeps it", "می\u200cخواهم", Prose, "می\u200cخواهم"},
		"latin joiner":   {"Latin letters need none", "pass\u200dwd", Prose, "pass<U+200D>wd"},
		"selectors":      {"a row of variation selectors carries data", "⚠\ufe0f\ufe0f\ufe01", Prose, "⚠\ufe0f<U+FE0F><U+FE01>"},
		"selector alone": {"a letter needs no variation", "a\ufe0f", Prose, "a<U+FE0F>"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Visible(c.in, c.keep); got != c.want {
				t.Errorf("%s: Visible(%q) = %q, want %q", c.reason, c.in, got, c.want)
			}
		})
	}
}

func TestAFirstLineNeverStandsForAll(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"make":                       "make",
		"\n make \n":                 "make",
		"git log # x\nrm -rf y":      "git log # x … (+1 line)",
		"a\n\nb\nc":                  "a … (+3 lines)",
		"a\r\nb":                     "a … (+1 line)",
		"a\x1b[2J\tb\nc":             "a<U+001B>[2J b … (+1 line)",
		"a\rb":                       "a<U+000D>b",
		strings.Repeat("x", 200_000): strings.Repeat("x", 200_000),
	} {
		if got := Head(in); got != want {
			t.Errorf("Head(%.40q) = %.80q, want %.80q", in, got, want)
		}
	}
}

func TestPiecesAreShownAsTheWholeIs(t *testing.T) {
	const whole = "a 👨‍👩‍👧 b ⚠️ c ❤️‍🔥 می\u200cخواهم 漢字 👍🏽\r\nend\u202e ü"
	for size := 1; size < len(whole); size++ {
		var shown, held strings.Builder
		for rest := whole; rest != ""; {
			n := min(size, len(rest))
			text := held.String() + rest[:n]
			rest = rest[n:]
			end := Complete(text)
			shown.WriteString(Visible(strings.ReplaceAll(text[:end], "\r\n", "\n"), Prose))
			held.Reset()
			held.WriteString(text[end:])
		}
		shown.WriteString(Visible(held.String(), Prose))
		if got, want := shown.String(), Visible(strings.ReplaceAll(whole, "\r\n", "\n"), Prose); got != want {
			t.Errorf("pieces of %d bytes: %q, want %q", size, got, want)
		}
	}
	for text, want := range map[string]int{"": 0, "abc": 3, "漢": 3, "a\r": 1, "a⚠": 1, strings.Repeat("\u200d", 100): 300 - 66} {
		if got := Complete(text); got != want {
			t.Errorf("Complete(%.20q) = %d, want %d", text, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\x00b", "\u202e", "\xff\xfe", "ä\n\t", "\U000E0041", "\u3164", "\x1b]0;x\a", "👨‍👩", "⚠️", "\u200d\u200d"} {
		f.Add(s, byte(Prose))
		f.Add(s, byte(0))
	}
	f.Fuzz(func(t *testing.T, s string, k byte) {
		keep := Keep(k) & Prose
		out := Visible(s, keep)
		if !utf8.ValidString(out) {
			t.Fatalf("Visible(%q) is not UTF-8: %q", s, out)
		}
		if Visible(out, keep) != out {
			t.Fatalf("Visible is not done after once: %q, %q", s, out)
		}
		for _, r := range out {
			kept := r == '\n' && keep&Lines != 0 || r == '\t' && keep&Tabs != 0
			if unicode.IsControl(r) && !kept || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("Visible(%q) holds %U", s, r)
			}
		}
		if strings.ContainsAny(Head(s), "\n\r\t\x1b") {
			t.Fatalf("Head(%q) steers a terminal", s)
		}
	})
}
