package approval

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// lineLimit bounds an answer.
const lineLimit = 4096

// Terminal is where a person is asked. It has one reader during its whole life; a line
// that was typed before a question was shown is not an answer to it.
type Terminal struct {
	in  io.Reader
	out io.Writer
	// flush throws away what was typed and not yet read; may be nil.
	flush func()

	start sync.Once
	lines chan string
	// closed ends the reader once its read returns.
	closed chan struct{}
	end    sync.Once
	ask    chan struct{} // holds one token: questions are asked one by one
}

// NewTerminal asks on out and reads answers from in. The reader ends with in;
// flush, if given, throws away what was typed before a question.
func NewTerminal(in io.Reader, out io.Writer, flush func()) *Terminal {
	t := &Terminal{in: in, out: out, flush: flush, lines: make(chan string), closed: make(chan struct{}), ask: make(chan struct{}, 1)}
	t.ask <- struct{}{}
	return t
}

// Close lets the reader go. A read of the terminal that is under way cannot be
// taken back: it ends with the input.
func (t *Terminal) Close() { t.end.Do(func() { close(t.closed) }) }

// read hands over lines for as long as there is input. A read cannot be taken
// back, so the goroutine outlives a question and ends with its input.
func (t *Terminal) read() {
	defer close(t.lines)
	r := bufio.NewReaderSize(t.in, lineLimit)
	for {
		raw, err := r.ReadSlice('\n')
		text := strings.TrimSpace(string(raw))
		if errors.Is(err, bufio.ErrBufferFull) {
			// A line of that length is not an answer.
			text = "?"
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
		}
		// A last line without its end is incomplete: it is not an answer either.
		if err != nil {
			return
		}
		select {
		case t.lines <- text:
		case <-t.closed:
			return
		}
	}
}

// drop forgets what was typed before the question.
func (t *Terminal) drop() {
	if t.flush != nil {
		t.flush()
	}
	for {
		select {
		case _, ok := <-t.lines:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// next waits for a line.
func (t *Terminal) next(ctx context.Context) (string, error) {
	t.start.Do(func() { go t.read() })
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case text, ok := <-t.lines:
		if !ok {
			return "", io.EOF
		}
		return text, nil
	}
}

// Stdio returns the terminal of the process, or nil when standard input or standard error
// is not a terminal: then no person can be asked.
func Stdio(stdin, stderr *os.File) *Terminal {
	if stdin == nil || stderr == nil || !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stderr.Fd())) {
		return nil
	}
	return NewTerminal(stdin, stderr, func() { flushInput(int(stdin.Fd())) })
}
