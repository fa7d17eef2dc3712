package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// forms returns a secret in the forms in which programs print it.
func forms(v string) []string {
	if len(v) < MinLength {
		return nil
	}
	all := append([]string{v, quoted(v, false), quoted(v, true)}, escapes(v)...)
	for _, escaped := range []string{url.QueryEscape(v), url.PathEscape(v)} {
		all = append(all, escaped, lowerEscapes(escaped))
	}
	all = append(all, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	all = append(all, base64Forms(v)...)
	all = append(all, wrappedForms(v)...)
	return append(all, lineForms(v)...)
}

// escapes are how shells, HTML and Python write a value that has characters of
// their own, and JSON inside JSON.
func escapes(v string) []string {
	byHTML := html.EscapeString(v)
	python := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v)
	return []string{
		byHTML, strings.NewReplacer("&#39;", "&#x27;", "&#34;", "&quot;").Replace(byHTML), strings.ReplaceAll(byHTML, "&#34;", "&quot;"),
		strings.ReplaceAll(v, "'", `'\''`), strings.ReplaceAll(v, "'", `'"'"'`), backslashed(v),
		python, strings.ReplaceAll(v, `\`, `\\`), ascii(quoted(v, false)), ascii(quoted(v, true)), ascii(python),
		quoted(quoted(v, false), false), quoted(ascii(quoted(v, false)), false),
	}
}

// backslashed is how bash writes a value with printf %q.
func backslashed(v string) string {
	var b strings.Builder
	for _, r := range v {
		if r < utf8.RuneSelf && !strings.ContainsRune("%+,-./:=@_", r) && !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ascii writes the other characters of a JSON string as escapes.
func ascii(v string) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// wrappedForms are the lines that programs break a long value into when they
// print it encoded and by itself: base64 after 76 characters, PEM after 64, xxd
// after 60 digits.
func wrappedForms(v string) []string {
	// A shorter rest occurs in other texts by chance.
	const enough = 8
	var all []string
	base := base64.RawStdEncoding.EncodeToString([]byte(v))[:len(v)*8/6]
	digits := hex.EncodeToString([]byte(v))
	for _, w := range []struct {
		form  string
		width int
	}{{base, 76}, {base, 64}, {digits, 60}, {strings.ToUpper(digits), 60}, {digits, 64}} {
		if len(w.form) <= w.width {
			continue
		}
		for line := range slices.Chunk([]byte(w.form), w.width) {
			if len(line) >= enough {
				all = append(all, string(line))
			}
		}
	}
	return all
}

// lineForms are the lines of a key that has several: tools indent them, number
// them and end them with CRLF.
func lineForms(v string) []string {
	// A shorter line, or one that frames a key, occurs in other texts too.
	const enough = 24
	if !strings.Contains(v, "\n") {
		return nil
	}
	var all []string
	for line := range strings.Lines(v) {
		line = strings.TrimSpace(line)
		if len(line) >= enough && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// quoted is the value inside a JSON string; some encoders escape < > & as well.
func quoted(v string, forHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(forHTML)
	if e.Encode(v) != nil {
		return ""
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(string(b[i:i+3])))
		}
	}
	return string(b)
}

// base64Forms are the characters that depend on the value alone, for each of the three
// positions that it can have in a longer text.
func base64Forms(v string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			s := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + v))
			from := (before*8 + 5) / 6
			to := (before + len(v)) * 8 / 6
			all = append(all, s[from:to])
		}
	}
	return all
}
