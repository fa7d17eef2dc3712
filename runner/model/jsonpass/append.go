package jsonpass

import "unicode/utf8"

// Open begins an element of an array, or a member of an object: it adds a comma
// where one is due.
func Open(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '[' && b[n-1] != '{' {
		b = append(b, ',')
	}
	return b
}

const hexDigits = "0123456789abcdef"

// AppendString adds s as a JSON string. Unlike encoding/json it leaves < > & as
// they are: source code is full of them, and escaped they are six tokens each.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), "\uFFFD"...)
		} else {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
