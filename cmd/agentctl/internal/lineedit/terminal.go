// Package lineedit reads what a person writes on a terminal, while others write above it.
//
// It uses no full screen: what was written stays in the scrollback of the terminal, and only
// the last lines are drawn again. Those are the live block: the line of output that is not
// complete, and the prompt with what is being written. Everything else is written once.
package lineedit

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoTerminal is the error of streams that are no terminal, or one that cannot take lines
// back.
var ErrNoTerminal = errors.New("this is no terminal on which lines can be edited")

// Options say how a terminal reads. All may be zero.
type Options struct {
	// Prompt is shown before what is written, Answer before an answer to a question.
	Prompt, Answer string
	// History are earlier lines, the oldest first.
	History []Line
	// Complete returns the words that may stand in place of the end of a text, and where in
	// the text these begin.
	Complete func(before string) (from int, words []string)
	// Dim paints what is not the person's own; nil leaves it.
	Dim func(string) string
}

// Terminal is a terminal that a person writes on. Its methods may be called by several
// goroutines.
type Terminal struct {
	o       Options
	in, out *os.File
	before  unix.Termios

	mu      sync.Mutex
	screen  screen
	buffer  buffer
	pasting bool
	// late: the paste began before the question that is open, and belongs to the stash.
	late bool
	cut  []cell // what was cut last
	// history are the lines before, at the place that is shown; draft is the line that was
	// being written.
	history []Line
	place   int
	draft   Line
	// asker is where answers go while a question is open; stash is what was written before.
	asker *Asker
	stash buffer
	// queue are lines that were entered and not yet read.
	queue  []Line
	wake   chan struct{}
	err    error // why no more lines come
	closed bool
	// working: an interrupt ends what the program does, and not what is being written.
	working bool

	// raise sends this program, or its whole job, the signal of a key.
	raise   func(s syscall.Signal)
	signals chan os.Signal
	done    chan struct{}
	loops   sync.WaitGroup
}

// Open begins to read lines. The caller closes the terminal, which then is as it was.
func Open(in, out *os.File, getenv func(string) string, o Options) (*Terminal, error) {
	if getenv("TERM") == "dumb" {
		return nil, ErrNoTerminal
	}
	before, err := unix.IoctlGetTermios(int(in.Fd()), terminalGet)
	if err != nil {
		return nil, ErrNoTerminal
	}
	if _, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil, ErrNoTerminal
	}
	t := &Terminal{
		o: o, in: in, out: out, before: *before, history: slices.Clone(o.History), wake: make(chan struct{}, 1),
		signals: make(chan os.Signal, 16), done: make(chan struct{}), raise: raise,
	}
	t.place = len(t.history)
	t.screen.out = out
	if err := t.raw(); err != nil {
		return nil, err
	}
	signal.Notify(t.signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	t.loops.Go(t.listen)
	// A read of a terminal cannot be ended: the goroutine ends with the program.
	go t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draw()
	return t, nil
}

// The sequences that turn the marks around what is pasted on and off.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

// raise sends the signal of a key: a stop to the whole job, as the terminal would have done.
func raise(s syscall.Signal) {
	to := os.Getpid()
	if s == syscall.SIGSTOP {
		to = 0
	}
	_ = syscall.Kill(to, s) // it may always signal itself
}

// raw gives every key to this program. Those that are signals are raised by it: what is
// pasted raises none.
func (t *Terminal) raw() error {
	raw := t.before
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN | unix.ISIG
	raw.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.IXON
	raw.Oflag |= unix.OPOST | unix.ONLCR
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(t.in.Fd()), terminalSet, &raw); err != nil {
		return err
	}
	_, err := io.WriteString(t.out, pasteOn)
	return err
}

func (t *Terminal) restore() {
	_, _ = io.WriteString(t.out, pasteOff)                                // a terminal that is gone needs none
	_ = unix.IoctlSetTermios(int(t.in.Fd()), terminalSetDrain, &t.before) // nor this
}

// Close ends the reading, takes the prompt away, and leaves the terminal as it was.
func (t *Terminal) Close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	t.screen.erase()
	t.screen.finish()
	t.restore()
	t.end(io.EOF)
	t.mu.Unlock()
	signal.Stop(t.signals)
	close(t.done)
	t.loops.Wait()
}

// Next waits for a line. io.EOF is the end of the input; a SignalError is a signal that ends
// the program.
func (t *Terminal) Next(ctx context.Context) (Line, error) {
	for {
		t.mu.Lock()
		if len(t.queue) > 0 {
			l := t.queue[0]
			t.queue = t.queue[1:]
			t.mu.Unlock()
			return l, nil
		}
		err := t.err
		t.mu.Unlock()
		if err != nil {
			return Line{}, err
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			return Line{}, context.Cause(ctx)
		}
	}
}

// SignalError is the error of a terminal that a signal has ended.
type SignalError struct{ Signal syscall.Signal }

func (e SignalError) Error() string { return e.Signal.String() }

// Work says that the program has begun something that an interrupt ends, until the function
// that it returns is called.
func (t *Terminal) Work() (done func()) {
	set := func(working bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.working = working
	}
	set(true)
	return func() { set(false) }
}

// end ends the input. The caller holds mu.
func (t *Terminal) end(err error) {
	if t.err == nil {
		t.err = err
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Write shows output above the prompt. A carriage return with what erases a line takes the
// incomplete line back.
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.out.Write(b)
	}
	t.screen.add(string(b))
	t.draw()
	return len(b), nil
}

// Columns is how many cells a line has.
func (t *Terminal) Columns() int { return t.screen.size().columns }

func (t *Terminal) draw() {
	if t.closed {
		return
	}
	prompt := t.o.Prompt
	if t.asker != nil {
		prompt = t.o.Answer
	}
	t.screen.draw(prompt, &t.buffer)
}

func (t *Terminal) listen() {
	for {
		select {
		case <-t.done:
			return
		case s := <-t.signals:
			t.handle(s)
		}
	}
}

func (t *Terminal) handle(s os.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	switch s {
	case os.Interrupt, syscall.SIGQUIT:
		if t.working {
			return
		}
		t.buffer, t.place, t.draft = buffer{}, len(t.history), Line{}
		t.draw()
	case syscall.SIGTERM, syscall.SIGHUP:
		sig, _ := s.(syscall.Signal)
		t.end(SignalError{sig})
	case syscall.SIGWINCH:
		t.draw()
	case syscall.SIGTSTP:
		t.screen.erase()
		t.restore()
		t.raise(syscall.SIGSTOP)
	case syscall.SIGCONT:
		_ = t.raw() // a terminal that is gone shows with the next read
		t.draw()
	}
}

func (t *Terminal) read() {
	var left []byte
	b := make([]byte, 4096)
	for {
		n, err := t.in.Read(b)
		left = append(left, b[:n]...)
		t.mu.Lock()
		for {
			k, size := nextKey(left)
			if size == 0 {
				break
			}
			left = left[size:]
			t.press(k)
		}
		if err != nil {
			t.end(io.EOF)
		}
		t.draw()
		over := t.err != nil
		t.mu.Unlock()
		if over {
			return
		}
	}
}

// press does what a key asks for. The caller holds mu, and draws.
func (t *Terminal) press(k key) {
	b := &t.buffer
	switch {
	case k == keyPaste:
		t.pasting = true
		return
	case k == keyPasteEnd:
		t.pasting, t.late = false, false
		return
	case t.pasting:
		if k == '\r' {
			k = '\n'
		}
		if t.late {
			b = &t.stash
		}
		if k < keyUp {
			b.insert(rune(k), true)
		}
		return
	case k == '\r':
		t.enter()
		return
	case k == '\n', k == keyNewline:
		b.insert('\n', false)
		return
	case k == '\t':
		t.complete()
		return
	case signalOf(k) != 0:
		t.raise(signalOf(k))
		return
	}
	t.edit(k)
}

// signalOf is the signal of a key; 0 for the others.
func signalOf(k key) syscall.Signal {
	switch k {
	case control('c'):
		return syscall.SIGINT
	case control('\\'):
		return syscall.SIGQUIT
	case control('z'):
		return syscall.SIGTSTP
	default:
		return 0
	}
}

func (t *Terminal) edit(k key) {
	b := &t.buffer
	kill := func(from, to int) {
		t.cut = slices.Clone(b.cells[from:to])
		b.remove(from, to)
	}
	switch k {
	case keyLeft, control('b'):
		b.move(-1)
	case keyRight, control('f'):
		b.move(1)
	case keyHome, control('a'):
		b.at = b.lineStart()
	case keyEnd, control('e'):
		b.at = b.lineEnd()
	case keyWordLeft:
		b.at = b.wordLeft()
	case keyWordRight:
		b.at = b.wordRight()
	case backspace, control('h'):
		if b.at > 0 {
			b.remove(b.at-1, b.at)
		}
	case control('d'):
		if len(b.cells) == 0 && t.asker == nil {
			t.end(io.EOF)
			return
		}
		fallthrough
	case keyDelete:
		if b.at < len(b.cells) {
			b.remove(b.at, b.at+1)
		}
	case control('k'):
		kill(b.at, b.lineEnd())
	case control('u'):
		kill(b.lineStart(), b.at)
	case control('w'):
		kill(b.wordLeft(), b.at)
	case control('y'):
		for _, c := range t.cut {
			b.insert(c.r, c.pasted)
		}
	case control('l'):
		t.screen.clear()
	case keyUp, control('p'):
		if !b.up() {
			t.recall(-1)
		}
	case keyDown, control('n'):
		if !b.down() {
			t.recall(1)
		}
	default:
		if k >= ' ' && k < keyUp {
			b.insert(rune(k), false)
		}
	}
}

// recall shows an earlier line, or a later one.
func (t *Terminal) recall(by int) {
	to := t.place + by
	if t.asker != nil || to < 0 || to > len(t.history) {
		return
	}
	if t.place == len(t.history) {
		t.draft = t.buffer.line()
	}
	if t.place = to; to == len(t.history) {
		t.buffer.set(t.draft)
	} else {
		t.buffer.set(t.history[to])
	}
}

// enter takes what was written: an answer where a question is open, else a line. A
// backslash at its end continues it.
func (t *Terminal) enter() {
	l := t.buffer.line()
	if t.asker != nil {
		t.screen.add(shown(l.Text) + "\n")
		t.asker.answer(l.Text)
		t.settle()
		return
	}
	if n := len(t.buffer.cells); n > 0 && t.buffer.at == n && t.buffer.cells[n-1] == (cell{r: '\\'}) {
		t.buffer.cells[n-1].r = '\n'
		return
	}
	t.buffer, t.draft = buffer{}, Line{}
	if strings.TrimSpace(l.Text) == "" {
		return
	}
	if n := len(t.history); n == 0 || !t.history[n-1].Same(l) {
		t.history = append(t.history, l)
	}
	t.place = len(t.history)
	t.queue = append(t.queue, l)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// complete replaces the end of what is before the cursor by what all words have in common,
// and lists them where that is not enough.
func (t *Terminal) complete() {
	if t.o.Complete == nil || t.asker != nil {
		return
	}
	before := t.buffer.before()
	from, words := t.o.Complete(before)
	if len(words) == 0 || from < 0 || from > len(before) {
		return
	}
	common := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, common) {
			common = common[:len(common)-1]
		}
	}
	common = strings.ToValidUTF8(common, "")
	typed := before[from:]
	if len(words) == 1 && !strings.HasSuffix(common, "/") {
		common += " "
	}
	if strings.HasPrefix(common, typed) && common != typed {
		for _, r := range common[len(typed):] {
			t.buffer.insert(r, false)
		}
		return
	}
	const most = 40
	list := strings.Join(words[:min(len(words), most)], "  ")
	if len(words) > most {
		list += "  …"
	}
	if t.o.Dim != nil {
		list = t.o.Dim(list)
	}
	t.screen.addLine(list)
}
