package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const token = `sk-canary<TOOL>&9/8+7=\é-zz'q"0123456789klmnop`

// leak returns the longest part of a secret that a text shows, as it is, in hex or in
// base64, counted in characters of that form, also after invisible characters are removed
// from the text.
func leak(text string, value string) (longest int, part string) {
	s := skimmer{b: []byte(text)}
	seen := string(s.next(make([]byte, 0, len(text)+8), nil))
	for _, form := range append(forms(value), strings.Map(func(r rune) rune {
		if r > 126 {
			return -1
		}
		return r
	}, value)) {
		for i := range form {
			for j := i + max(longest, mostShown) + 1; j <= len(form) && strings.Contains(seen, form[i:j]); j++ {
				longest, part = j-i, form[i:j]
			}
		}
	}
	return longest, part
}

// mostShown is how much of any form may be visible: a few characters at each end of
// what was hidden, which encodings share with their neighbours.
const mostShown = 5

// encodings are how programs print a value.
func encodings(v string) map[string]string {
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	return map[string]string{
		"plain": v, "json": quote(v), "query": url.QueryEscape(v), "path": url.PathEscape(v),
		"hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"base64": base64.StdEncoding.EncodeToString([]byte(v)), "base64 behind one": base64.StdEncoding.EncodeToString([]byte("x" + v)),
		"base64 behind two": base64.URLEncoding.EncodeToString([]byte("xx" + v + "y")),
		"shell":             "'" + strings.ReplaceAll(v, "'", `'\''`) + "'",
	}
}

// breaks are what programs put inside a value.
var breaks = map[string]string{
	"line": "\n", "CRLF": "\r\n", "carriage return": "\r", "space": " ", "indent": "\n\t    ", "color": "\x1b[01;31m\x1b[K", "end of color": "\x1b[m\x1b[K",
	"title": "\x1b]0;title\x07", "link": "\x1b]8;;http://x\x1b\\", "bell": "\a", "NUL": "\x00", "zero width": "\u200b", "joiner": "\u2060",
	"soft hyphen": "\u00ad", "BOM": "\ufeff", "no UTF-8": "\xff", "replaced": "\ufffd", "tag": "\U000e0041", "reset": "\x1bc", "charset": "\x1b(B",
	"written line": `\n`, "written CRLF": `\r\n`, "line written twice": `\\n`, "line written in colours": "\x1b[1m\\n\x1b[m",
}

// inEscape is the beginning of an escape: a program that writes it breaks no line there.
var inEscape = regexp.MustCompile(`\\(u[0-9a-f]{0,3})?$`)

func TestNothingInsideAFormHidesIt(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for name, form := range encodings(token) {
		for what, with := range breaks {
			for at := 1; at < len(form); at++ {
				if !utf8.RuneStart(form[at]) || strings.Contains(what, "written") && inEscape.MatchString(form[:at]) {
					continue
				}
				text := "the key is " + form[:at] + with + form[at:] + " and more"
				if n, part := leak(r.String(text), token); n > mostShown {
					t.Fatalf("%s with a %s at %d: %q shows %q", name, what, at, r.String(text), part)
				}
			}
		}
	}
}

func TestNothingIsShownOfAStreamInPieces(t *testing.T) {
	r := NewRedactor(NewValue(token))
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	for name, form := range encodings(token) {
		for range 200 {
			text, s := "the key is "+form+" and more", r.NewStream()
			var shown strings.Builder
			for text != "" {
				n := 1 + rnd.IntN(min(len(text), 9))
				shown.WriteString(s.Push(text[:n]))
				text = text[n:]
				if rnd.IntN(4) == 0 && (text == "" || utf8.RuneStart(text[0])) {
					shown.WriteString(s.Push("\x1b[3" + fmt.Sprint(rnd.IntN(8)) + "m"))
				}
			}
			shown.WriteString(s.Flush())
			if n, part := leak(shown.String(), token); n > mostShown {
				t.Fatalf("%s: %q shows %q", name, shown.String(), part)
			}
		}
	}
}

// What a watcher sees is either the newest output, cut at any byte, or the next piece.
func TestProgressShowsNoPieceOfASecret(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for name, form := range encodings(token) {
		text := "begin: " + form + " end"
		t.Run(name+" grows", func(t *testing.T) {
			p := r.NewProgress()
			for n := 1; n <= len(text); n++ {
				if n, part := leak(p.Show(text[:n]), token); n > mostShown {
					t.Fatalf("shows %q", part)
				}
			}
		})
		t.Run(name+" is cut before", func(t *testing.T) {
			for n := range len(text) {
				if n, part := leak(r.NewProgress().Show(text[n:]), token); n > mostShown {
					t.Fatalf("shows %q", part)
				}
			}
		})
		t.Run(name+" is cut at both ends", func(t *testing.T) {
			for i := range text {
				for j := i + 1 + i%3; j <= len(text); j += 3 {
					if n, part := leak(r.NewProgress().Show(text[i:j]), token); n > mostShown {
						t.Fatalf("shows %q", part)
					}
				}
			}
		})
		for size := 1; size < 12; size++ {
			t.Run(fmt.Sprintf("%s in pieces of %d", name, size), func(t *testing.T) {
				p, all := r.NewProgress(), ""
				for rest := text; rest != ""; {
					n := min(size, len(rest))
					all += p.Show(rest[:n])
					rest = rest[n:]
				}
				if n, part := leak(all, token); n > mostShown {
					t.Fatalf("%q shows %q", all, part)
				}
			})
		}
	}
	p := r.NewProgress()
	for _, text := range []string{"compiling s", "compiling sk", "linking", "12 tests, 0 failures"} {
		if got := p.Show(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The lines of a dump, as these programs write them.
func TestADumpShowsNoSecret(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for _, before := range []string{"", "key: ", "ZYXWVUTSRQPONM"} {
		text := before + token + "\n"
		for name, dump := range dumpsOf([]byte(text)) {
			got := r.String(dump)
			if shown := dumpedLeak(got, token); shown > mostShown+2 { // the ends of a line
				t.Errorf("%s behind %q:\n%s\nshows %d characters in:\n%s", name, before, dump, shown, got)
			}
		}
	}
	plain := "0000000 12 34 56\n  12 file\nbe14c61 add\n00000000: 6e6f 7468 696e 6720 6865 7265 0a            nothing here.\n"
	if got := r.String(plain); got != plain {
		t.Errorf("a harmless dump became %q", got)
	}
}

// dumpedLeak counts how many characters of a secret can be read in all columns: as text,
// and as numbers.
func dumpedLeak(dump, value string) int {
	most, _ := leak(dump, value)
	dumps([]byte(dump), func(bytes []dumped) {
		var text []byte
		for _, d := range bytes {
			text = append(text, d.value)
		}
		n, _ := leak(string(text), value)
		most = max(most, n)
	})
	return most
}

// dumpsOf are the dumps of a text.
func dumpsOf(b []byte) map[string]string {
	all := map[string]string{"hexdump -C": hex.Dump(b)}
	columns := func(offset, group, width int, colon bool, number func(b []byte) string, chars bool) string {
		var out strings.Builder
		for at := 0; at < len(b); at += width {
			row := b[at:min(at+width, len(b))]
			line := ""
			if offset > 0 {
				line = fmt.Sprintf("%0*x", offset, at)
				if colon {
					line += ":"
				}
			}
			for i := 0; i < len(row); i += group {
				line += " " + number(row[i:min(i+group, len(row))])
			}
			if chars {
				line = fmt.Sprintf("%-50s ", line)
				for _, c := range row {
					if c < ' ' || c > 126 {
						c = '.'
					}
					line += string(rune(c))
				}
			}
			out.WriteString(line + "\n")
		}
		return out.String()
	}
	whole := func(b []byte) string { return hex.EncodeToString(b) }
	swapped := func(b []byte) string {
		b = append(append([]byte(nil), b...), 0)[:2]
		return fmt.Sprintf("%02x%02x", b[1], b[0])
	}
	octal := func(b []byte) string {
		b = append(append([]byte(nil), b...), 0)[:2]
		return fmt.Sprintf("%06o", int(b[1])<<8|int(b[0]))
	}
	all["xxd"] = columns(8, 2, 16, true, whole, true)
	all["xxd -g1"] = columns(8, 1, 16, true, whole, true)
	all["xxd -c8"] = columns(8, 2, 8, true, whole, false)
	all["od -An -tx1"] = columns(0, 1, 16, false, whole, false)
	all["od -tx1"] = columns(7, 1, 16, false, whole, false)
	all["od -x"] = columns(7, 2, 16, false, swapped, false)
	all["hexdump"] = all["od -x"]
	all["od"] = columns(7, 2, 16, false, octal, false)
	all["od -b"] = columns(7, 1, 16, false, func(b []byte) string { return fmt.Sprintf("%03o", b[0]) }, false)
	all["xxd -i"] = columns(0, 1, 12, false, func(b []byte) string { return fmt.Sprintf("0x%02x,", b[0]) }, false)
	all["od -c"] = columns(7, 1, 16, false, func(b []byte) string {
		switch {
		case b[0] == '\n':
			return ` \n`
		case b[0] < ' ' || b[0] > 126:
			return fmt.Sprintf("%03o", b[0])
		}
		return "  " + string(rune(b[0]))
	}, false)
	for name, argv := range map[string][]string{
		"the xxd here": {"xxd"}, "the od here": {"od"}, "the od -c here": {"od", "-c"}, "the od -An -c here": {"od", "-An", "-c"}, "the od -tx1z here": {"od", "-tx1z"},
		"the hexdump here": {"hexdump", "-C"}, "the fold here": {"fold", "-w", "10"}, "the xxd -p here": {"xxd", "-p"},
	} {
		c := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it ends with its input
		c.Stdin = strings.NewReader(string(b))
		if out, err := c.Output(); err == nil { // where the program is installed
			all[name] = string(out)
		}
	}
	return all
}

func TestTheEscapesOfJSONHideNothing(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for what, with := range breaks {
		for at := 1; at < len(token); at += 3 {
			if !utf8.RuneStart(token[at]) || strings.Contains(what, "written") && inEscape.MatchString(token[:at]) {
				continue
			}
			line, err := json.Marshal(map[string]string{"type": "tool.result", "text": "key " + token[:at] + with + token[at:], "more": "x"})
			if err != nil {
				t.Fatal(err)
			}
			clean := r.JSON(line)
			var got map[string]string
			if err := json.Unmarshal(clean, &got); err != nil {
				t.Fatalf("a %s at %d: %s: %v", what, at, clean, err)
			}
			if n, part := leak(got["text"], token); n > mostShown {
				t.Fatalf("a %s at %d: %s shows %q", what, at, clean, part)
			}
		}
	}
	escaped := `{"command":"echo sk-\u0063anary<TOOL>&9/8+7=\\\u00e9-zz'q\"0123456789klmnop"}`
	if got := string(r.JSON([]byte(escaped))); got != `{"command":"echo ***"}` {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsCutOffAnOutputIsHidden(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for at := 1; at < len(token); at++ {
		text := strings.Repeat("a", 100) + token[:at]
		if n, part := leak(r.Cut(text), token); n > mostShown {
			t.Errorf("cut at %d: %q", at, part)
		}
	}
	for at := 1; at < len(token); at++ {
		if !utf8.RuneStart(token[at]) {
			continue
		}
		text := "the server said: bad key " + token[:at] + "…; try again"
		if n, part := leak(r.String(text), token); n > mostShown || !strings.Contains(r.String(text), "…; try again") {
			t.Errorf("shortened at %d: %q shows %q", at, r.String(text), part)
		}
	}
	if got := r.Cut("sk-"); got != "sk-" {
		t.Errorf("a few characters became %q", got)
	}
}

// An answer that is JSON holds what a tool has said with its breaks and characters escaped,
// and is escaped again by what stores it.
func TestEscapesThatArePartOfATextHideNothing(t *testing.T) {
	r := NewRedactor(NewValue(token))
	for name, form := range encodings(token) {
		text := "a\n" + form[:len(form)/2] + "\r\n" + form[len(form)/2:] + "\tb"
		if inEscape.MatchString(form[:len(form)/2]) {
			text = "a\n" + form + "\tb"
		}
		for depth := 1; depth < 4; depth++ {
			b, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b[1 : len(b)-1])
			leak := func(text, value string) (int, string) { return leak(strings.ReplaceAll(text, `\`, ""), value) } // that of others shows nothing
			if n, part := leak(r.String(text), token); n > mostShown {
				t.Fatalf("%s escaped %d times: %q shows %q", name, depth, r.String(text), part)
			}
			clean := r.JSON(b)
			if n, part := leak(string(clean), token); n > mostShown || !json.Valid(clean) {
				t.Fatalf("%s escaped %d times as JSON: %s shows %q", name, depth, clean, part)
			}
			s, shown := r.NewStream(), ""
			for _, c := range text {
				shown += s.Push(string(c))
			}
			if got, want := shown+s.Flush(), r.String(text); got != want {
				t.Fatalf("%s escaped %d times: in pieces %q, want %q", name, depth, got, want)
			}
		}
	}
	for _, plain := range []string{`C:\new\table\users`, `a\`, `{"a":"b\\"}`, `\u00e9\ud83d\ude00 \u12`} {
		if got := r.String(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
		if got := string(r.JSON([]byte(plain))); got != plain {
			t.Errorf("%q became %q as JSON", plain, got)
		}
	}
}
