package shell

import (
	"strconv"
	"strings"
)

// unescape removes backslashes and reports whether the text is a pattern.
func unescape(s string) (text string, glob bool) {
	if !strings.ContainsAny(s, `\*?[`) {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[':
			glob = true
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), glob
}

func unescapeDouble(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC decodes $'...'; false when a NUL or an escape that is not known makes
// the text end where we do not see it.
func ansiC(s string) (string, bool) {
	simple := map[byte]byte{
		'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := simple[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		start, digits, base := i+1, 2, 16
		switch c := s[i]; {
		case c == 'x':
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			start, digits, base = i, 3, 8
		default:
			return b.String(), false
		}
		end := start
		for end < len(s) && end < start+digits && isDigit(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[start:end], base, 32)
		if err != nil || n < 2 {
			return b.String(), false
		}
		if s[i] == 'u' || s[i] == 'U' {
			b.WriteRune(rune(n))
		} else {
			b.WriteByte(byte(n))
		}
		i = end - 1
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}
