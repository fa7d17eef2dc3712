package expr

import (
	"fmt"
	"strings"
)

// segment is a piece of a text: literal text, or an expression.
type segment struct {
	text string
	expr bool
}

// parse splits a text at its ${expressions}; $${ is a literal ${. A brace inside an
// expression is part of it when it is balanced or in a string.
func parse(s string) ([]segment, error) {
	var out []segment
	var lit strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			lit.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			n := closing(s[i+2:])
			if n < 0 {
				return nil, fmt.Errorf("${ at byte %d has no closing brace; $${ is a literal ${", i)
			}
			src := strings.TrimSpace(s[i+2 : i+2+n])
			if src == "" {
				return nil, fmt.Errorf("${ at byte %d holds no expression; $${ is a literal ${", i)
			}
			if lit.Len() > 0 {
				out = append(out, segment{text: lit.String()})
				lit.Reset()
			}
			out = append(out, segment{text: src, expr: true})
			i += n + 3
		default:
			lit.WriteByte(s[i])
			i++
		}
	}
	if lit.Len() > 0 {
		out = append(out, segment{text: lit.String()})
	}
	return out, nil
}

// closing returns the position of the brace that ends the expression at the
// beginning of s, or -1.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '\'', '"':
			n := quoted(s[i:], i > 0 && s[i-1]|0x20 == 'r')
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// quoted returns the length of the CEL string literal at the beginning of s, or -1 if it
// has no end. In a raw literal a backslash is an ordinary character.
func quoted(s string, raw bool) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return -1
}
