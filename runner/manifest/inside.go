package manifest

import (
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// ErrorInside returns an error about a place inside a text, for example an
// expression: line and col count from 1 in the value.
func (d *Document) ErrorInside(path string, line, col int, format string, args ...any) Finding {
	return d.at(d.Errorf(path, format, args...), d.LocateInside(path, line, col))
}

// LocateInside returns the place in the file of a place inside a text. Where
// the text is not written as it reads — it is folded, or has escapes — it
// returns the place of the text.
func (d *Document) LocateInside(path string, line, col int) Position {
	whole := d.Locate(path)
	at := d.text.find(path)
	if !at.exact || line < 1 || col < 1 {
		return whole
	}
	n := deref(at.value)
	lines := strings.Split(n.Value, "\n")
	if n.Kind != yaml.ScalarNode || line > len(lines) {
		return whole
	}
	p := d.text.position(n)
	indent := ""
	switch n.Style {
	case yaml.LiteralStyle:
		p.Line += line
		raw := d.text.lineAt(p.Line)
		indent = raw[:max(0, len(raw)-len(lines[line-1]))]
		p.Col = 1
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		p.Col++
	case yaml.FoldedStyle:
		return whole
	default: // a plain text begins where its node does
	}
	if n.Style != yaml.LiteralStyle && line > 1 {
		return whole
	}
	p.Col += utf8.RuneCountInString(indent)
	// The text at that position must be the one that is meant.
	if _, rest := cut(d.text.lineAt(p.Line), p.Col); !strings.HasPrefix(rest, lines[line-1]) {
		return whole
	}
	p.Col += col - 1
	return p
}
