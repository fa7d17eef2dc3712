package display

import (
	"bufio"
	"encoding/json"
)

// Lines writes values as JSON, one a line.
type Lines struct {
	out *bufio.Writer
	enc *json.Encoder
}

// NewLines writes to a screen. What it holds back is written by Flush.
func NewLines(s *Screen) *Lines {
	out := bufio.NewWriterSize(s, 64<<10)
	l := &Lines{out: out, enc: json.NewEncoder(objects{out, s.TTY})}
	l.enc.SetEscapeHTML(false)
	return l
}

// Add writes one value.
func (l *Lines) Add(v any) error { return l.enc.Encode(v) }

// Flush writes what was held back.
func (l *Lines) Flush() error { return l.out.Flush() }
