package display

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"agentctl.dev/agentctl/api/safetext"
)

// The colour modes of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// Screen is one of the program's outputs and what it can show. The first write
// that fails is kept; later ones are not tried.
type Screen struct {
	// TTY says that a person looks at a terminal.
	TTY bool
	// Color reports whether text may be coloured.
	Color bool
	// Live says that lines may be taken back: a terminal that is not dumb.
	Live bool

	w   io.Writer
	err error
	// columns is the number of cells of a line; nil or 0 is no limit.
	columns func() int
}

// NewScreen looks at where w leads. mode is one of the colour modes; getenv is
// asked for NO_COLOR, CLICOLOR_FORCE and TERM.
func NewScreen(w io.Writer, mode string, getenv func(string) string) *Screen {
	f, isFile := w.(*os.File)
	s := &Screen{w: w, TTY: isFile && term.IsTerminal(int(f.Fd()))}
	dumb := getenv("TERM") == "dumb"
	s.Live = s.TTY && !dumb
	s.Color = useColor(mode, s.Live, getenv)
	if s.TTY {
		s.columns = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil || w < 20 {
				return 0
			}
			return w
		}
	}
	return s
}

func useColor(mode string, live bool, getenv func(string) string) bool {
	switch mode {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	}
	if getenv("NO_COLOR") != "" {
		return false
	}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return live
}

// Write writes as it is.
func (s *Screen) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	if err != nil {
		s.err = &WriteError{err}
	}
	return n, s.err
}

// Output is a writer for others that marks its errors as a Screen does.
func Output(w io.Writer) io.Writer { return &Screen{w: w} }

// WriteError is the error of a write to an output of the program, as opposed to
// one of a file or a connection.
type WriteError struct{ err error }

func (e *WriteError) Error() string { return e.err.Error() }
func (e *WriteError) Unwrap() error { return e.err }

// BrokenPipe reports whether err says that the reader of an output has gone away,
// as in "agentctl events @latest | head".
func BrokenPipe(err error) bool {
	w, ok := errors.AsType[*WriteError](err)
	return ok && errors.Is(w, syscall.EPIPE)
}

func (s *Screen) print(text string) { _, _ = io.WriteString(s, text) } // the error is kept for Err

// Err returns the first error of a write.
func (s *Screen) Err() error { return s.err }

// width is asked for each line: a terminal may be resized.
func (s *Screen) width() int {
	if s.columns == nil {
		return 0
	}
	return s.columns()
}

// style is a colour or weight of text.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (s *Screen) paint(st style, text string) string {
	if !s.Color || st == "" || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// cut shortens text to a number of cells; 0 leaves it.
func cut(text string, cells int) string {
	if cells <= 0 {
		return text
	}
	return ansi.Truncate(text, cells, "…")
}

// mostMore is how wide the end of a text from safetext.Head can be.
const mostMore = 20

// fit is cut for a text that may end with how many lines follow (safetext.Head):
// that is never cut off.
func fit(text string, cells int) string {
	i := strings.LastIndex(text, safetext.More)
	if cells <= 0 || i < 0 || ansi.StringWidth(text) <= cells {
		return cut(text, cells)
	}
	more := text[i:]
	if n := ansi.StringWidth(more); n < cells && n <= mostMore {
		return cut(text[:i], cells-n) + more
	}
	return cut(text, cells)
}

// pad fills text up to a number of cells.
func pad(text string, cells int) string {
	if n := cells - ansi.StringWidth(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}
