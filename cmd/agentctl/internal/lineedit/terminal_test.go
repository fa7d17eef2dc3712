package lineedit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait. Nothing is slow when it takes less: machines are busy.
const patience = 30 * time.Second

// person is one who sits at a terminal and has seen all that came up.
type person struct {
	tb     testing.TB
	master *os.File
	slave  *os.File
	fd     int // of the master

	mu    sync.Mutex
	more  *sync.Cond
	shown bytes.Buffer
	gone  bool
}

func sit(tb testing.TB, columns, rows uint16) *person {
	tb.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // so that Close ends a read
	if err != nil {
		tb.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		tb.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	p := &person{tb: tb, master: master, slave: slave, fd: fd}
	p.more = sync.NewCond(&p.mu)
	p.resize(columns, rows)
	var reads sync.WaitGroup
	reads.Go(p.watch)
	tb.Cleanup(func() {
		_ = master.Close() // it may be closed already
		reads.Wait()
		_ = slave.Close()
	})
	return p
}

func (p *person) resize(columns, rows uint16) {
	p.tb.Helper()
	if err := unix.IoctlSetWinsize(p.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *person) watch() {
	b := make([]byte, 4096)
	for {
		n, err := p.master.Read(b)
		p.mu.Lock()
		p.shown.Write(b[:n])
		p.gone = err != nil
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sees waits until a text has come up, and forgets everything up to its end.
func (p *person) sees(text string) {
	p.tb.Helper()
	late := time.AfterFunc(patience, func() { p.mu.Lock(); p.gone = true; p.more.Broadcast(); p.mu.Unlock() })
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if i := bytes.Index(p.shown.Bytes(), []byte(text)); i >= 0 {
			p.shown.Next(i + len(text))
			return
		}
		if p.gone {
			p.tb.Fatalf("%q did not come up, but %q", text, p.shown.String())
		}
		p.more.Wait()
	}
}

func (p *person) types(text string) {
	p.tb.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *person) opens(o Options) *Terminal {
	p.tb.Helper()
	if o.Prompt == "" {
		o.Prompt, o.Answer = "> ", "answer> "
	}
	t, err := Open(p.slave, p.slave, func(string) string { return "" }, o)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(t.Close)
	return t
}

func next(tb testing.TB, t *Terminal) Line {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := t.Next(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// wants expects the text of the next line.
func wants(tb testing.TB, t *Terminal, text string) {
	tb.Helper()
	if got := next(tb, t); got.Text != text {
		tb.Errorf("got %q, want %q", got.Text, text)
	}
}

func TestWhatAPersonTypesIsALine(t *testing.T) {
	for name, c := range map[string]struct {
		reason, typed, want string
	}{
		"plain":     {"Enter sends it", "hello\r", "hello"},
		"unicode":   {"characters may have several bytes", "größe 日本 👍\r", "größe 日本 👍"},
		"backspace": {"a character goes", "helo\x7flo\r", "hello"},
		"middle":    {"the cursor moves", "hllo\x1b[D\x1b[D\x1b[De\r", "hello"},
		"home":      {"to the ends", "ello\x01h\x05!\r", "hello!"},
		"word":      {"a word goes, and comes back", "one two\x17three \x19\r", "one three two"},
		"kill":      {"the rest goes", "one two\x01\x0b\r\x15x\r", "x"},
		"lines":     {"Ctrl-J, Alt-Enter and a backslash make lines", "a\nb\x1b\rc\\\rd\r", "a\nb\nc\nd"},
		"up":        {"in several lines the cursor goes up", "ab\ncd\x1b[A\x1b[DX\r", "aXb\ncd"},
		"unknown":   {"unknown keys do nothing", "a\x1b[99;9~\x1bZ\x1bOPb\x00\r", "ab"},
		"broken":    {"what is not UTF-8 is left out", "a\xffb\r", "ab"},
		"delete":    {"Delete and Ctrl-D take what is behind", "abc\x01\x1b[3~\x04\r", "c"},
		"blank":     {"an empty line is none", "  \r\rx\r", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, 80, 24)
			term := p.opens(Options{})
			p.types(c.typed)
			if got := next(t, term); got.Text != c.want || got.Pasted != nil {
				t.Errorf("%s: %q gives %+v, want %q", c.reason, c.typed, got, c.want)
			}
		})
	}
}

// What is pasted is one line, whatever it holds, and is known to be pasted.
func TestWhatIsPastedIsNoKey(t *testing.T) {
	p := sit(t, 40, 24)
	term := p.opens(Options{Complete: func(string) (int, []string) { t.Error("a tab in a paste completes"); return 0, nil }})
	p.types("see \x1b[200~a\r\nb\tc\x04\x03\x15/quit\r\x1b[201~ end\r")
	got := next(t, term)
	want := "see a\n\nb\tc\x04\x03\x15/quit\n end"
	if got.Text != want || !slices.Equal(got.Pasted, []Span{{4, len(want) - 4}}) {
		t.Errorf("got %+v, want %q", got, want)
	}
	p.types("\x1b[200~" + strings.Repeat("long line of a file\n", 3000) + "\x1b[201~\r")
	if got := next(t, term); len(got.Text) != 60000 {
		t.Errorf("of a long paste there are %d bytes", len(got.Text))
	}
}

func TestEarlierLinesComeBack(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{History: []Line{{Text: "first"}, {Text: "second\nline"}}})
	p.types("draft\x1b[A\x1b[A\x1b[A\r") // the second has two lines
	wants(t, term, "first")
	p.types("draft\x1b[A\x1b[B!\r")
	wants(t, term, "draft!")
}

// What was pasted is data also when it comes back as an earlier line, or as the draft.
func TestWhatWasPastedStaysPasted(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{History: []Line{{Text: "é !`id`", Pasted: []Span{{3, 8}}}}})
	wants := func(how, text string, pasted ...Span) {
		t.Helper()
		if got := next(t, term); got.Text != text || !slices.Equal(got.Pasted, pasted) {
			t.Errorf("%s gives %+v, want %q with %v", how, got, text, pasted)
		}
	}
	p.types("\x1b[A\r")
	wants("a line of another chat", "é !`id`", Span{3, 8})
	p.types("do \x1b[200~!`id`\x1b[201~\x1b[A\x1b[B!\r")
	wants("the draft", "do !`id`!", Span{3, 8})
	p.types("\x1b[A\r")
	wants("the line before", "do !`id`!", Span{3, 8})
	p.types("do !`id`!\r")
	wants("the same line, typed", "do !`id`!")
	p.types("\x1b[A\r")
	wants("the typed one", "do !`id`!")
}

// A sequence that is not complete does not swallow the end of a paste: nothing would be a key
// any more.
func TestAPasteEnds(t *testing.T) {
	for _, last := range []string{"\x1b", "\x1b[", "\x1bO", "\x1b[1;", "\x1b[20", "\xe2\x82", "\x1b[" + strings.Repeat("1", 40)} {
		p := sit(t, 200, 24)
		term := p.opens(Options{})
		p.types("\x1b[200~text" + last + "\x1b[201~\x15new\r")
		wants(t, term, "new")
	}
}

// A paste that had begun before a question was shown is not part of the answer, and control
// characters that are pasted do not reach the terminal.
func TestAPasteIsNoAnswer(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{})
	p.types("\x1b[200~first ")
	p.sees("> first")
	a := term.Asker()
	defer a.Close()
	_, _ = io.WriteString(a, "Allow it? ")
	p.sees("answer> ")
	p.types("yes\x1b[201~no\r")
	b := make([]byte, 20)
	if n, err := a.Read(b); err != nil || string(b[:n]) != "no\n" {
		t.Errorf("the answer is %q, %v", b[:n], err)
	}
	_, _ = io.WriteString(a, "And this? ")
	p.types("\x1b[200~\u009b5m\u009d0;title\x07\x1b[201~\r")
	p.sees("And this? ·5m·0;title·")
	p.types("!\r")
	if got := next(t, term); got.Text != "first yes!" || !slices.Equal(got.Pasted, []Span{{0, 9}}) {
		t.Errorf("what was pasted is %+v", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.ContainsAny(p.shown.String(), "\u009b\u009d\x07") {
		t.Errorf("the terminal got %q", p.shown.String())
	}
}

func TestTabCompletes(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{Complete: func(before string) (int, []string) {
		from := strings.LastIndex(before, "@") + 1
		var words []string
		for _, w := range []string{"src/", "src/main.go", "src/made.go", "日本", "日月"} {
			if strings.HasPrefix(w, before[from:]) && (w != "src/" || before[from:] == "sr") {
				words = append(words, w)
			}
		}
		return from, words
	}})
	p.types("see @src/m\t")
	p.sees("> see @src/ma")
	p.types("\t")
	p.sees("src/main.go  src/made.go")
	p.types("d\t!\r")
	wants(t, term, "see @src/made.go !")
	p.types("@\xe6\x97\xa5\t\r")
	wants(t, term, "@日")
}

// Output comes above what is being written, which stays.
func TestOutputComesAboveThePrompt(t *testing.T) {
	p := sit(t, 40, 24)
	term := p.opens(Options{})
	p.types("half")
	p.sees("half")
	_, _ = io.WriteString(term, "a line\nand a par")
	p.sees("a line\r\nand a par\r\n> half")
	_, _ = io.WriteString(term, "\r\x1b[Kanother\n")
	p.sees("another\r\n> half")
	p.types(" line\r")
	wants(t, term, "half line")
}

func TestAnAnswerIsWhatIsTypedAfterTheQuestion(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{})
	p.types("y")
	p.sees("> y")
	a := term.Asker()
	_, _ = io.WriteString(a, "Allow it? ")
	p.sees("answer> ")
	p.types("no\r")
	b := make([]byte, 10)
	if n, err := a.Read(b); err != nil || string(b[:n]) != "no\n" {
		t.Errorf("the answer is %q, %v", b[:n], err)
	}
	p.types("es\r")
	if got := next(t, term); got.Text != "yes" {
		t.Errorf("what was being written is %q", got.Text)
	}
	_, _ = io.WriteString(a, "And this? ")
	p.sees("answer> ")
	_, _ = io.WriteString(a, "\napproved by another\n")
	p.sees("\r\n> ")
	p.types("a prompt\r")
	wants(t, term, "a prompt")
	a.Close()
	if _, err := a.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("a closed one gives %v", err)
	}
}

func TestTheEndOfTheInput(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{})
	p.types("last\r\x04")
	wants(t, term, "last")
	if _, err := term.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
	term.Close()
	after, err := unix.IoctlGetTermios(int(p.slave.Fd()), terminalGet)
	if err != nil || after.Lflag&unix.ICANON == 0 || after.Lflag&unix.ECHO == 0 {
		t.Errorf("the terminal is not as it was: %+v, %v", after, err)
	}
	p.sees(pasteOff)
}

// A terminal that is closed in the middle ends the input.
func TestATerminalThatIsClosed(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{})
	p.types("half")
	p.sees("half")
	_ = p.master.Close()
	if _, err := term.Next(t.Context()); err == nil {
		t.Error("there is no end")
	}
	_, _ = io.WriteString(term, "nobody reads it\n")
}

func TestWhatIsNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w, func(string) string { return "" }, Options{}); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("a pipe gives %v", err)
	}
	p := sit(t, 80, 24)
	if _, err := Open(p.slave, p.slave, func(string) string { return "dumb" }, Options{}); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("a dumb one gives %v", err)
	}
}

// The rows of a long text fit the terminal, and the cursor is where the text goes on.
func TestLayout(t *testing.T) {
	b := &buffer{}
	b.set(Line{Text: "0123456789\nab\t\x1b[31m日本"})
	rows, row, column := layout("> ", b, 8)
	want := []string{"> 012345", "6789", "  ab    ", "·[31m日", "本"}
	if !slices.Equal(rows, want) || row != 4 || column != 2 {
		t.Errorf("rows %q, cursor %d:%d", rows, row, column)
	}
	b.at = 0
	if _, row, column := layout("> ", b, 8); row != 0 || column != 2 {
		t.Errorf("cursor %d:%d", row, column)
	}
	b.set(Line{Text: "123456"})
	if rows, row, column := layout("> ", b, 8); len(rows) != 2 || row != 1 || column != 0 {
		t.Errorf("a full row: %q, cursor %d:%d", rows, row, column)
	}
}

// FuzzKeys: whatever a terminal sends, each byte is read once and the text is drawn.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"hello\r", "\x1b[200~a\rb\x1b[201~\r", "\x1b[A\x1b[3~\x1b\r", "\x1b\x1b[", "\xe6\x97", "a\\\r\x0b\x19\t"} {
		f.Add([]byte(s), uint8(40))
	}
	f.Fuzz(func(t *testing.T, sent []byte, width uint8) {
		term := &Terminal{wake: make(chan struct{}, 1), raise: func(syscall.Signal) {}}
		term.screen.out, _ = os.Open(os.DevNull)
		defer term.screen.out.Close()
		left := sent
		for {
			k, size := nextKey(left)
			if size == 0 {
				break
			}
			if size > len(left) {
				t.Fatalf("%q: a key of %d bytes", left, size)
			}
			left = left[size:]
			term.press(k)
			if b := &term.buffer; b.at < 0 || b.at > len(b.cells) {
				t.Fatalf("%q: the cursor is at %d of %d", sent, b.at, len(b.cells))
			}
		}
		if len(left) > maxSequence+2 {
			t.Errorf("%q: %d bytes are not read", sent, len(left))
		}
		columns := max(int(width), leastColumns)
		rows, row, column := layout("> ", &term.buffer, columns)
		if row < 0 || row >= len(rows) || column < 0 || column > columns {
			t.Errorf("%q: the cursor is at %d:%d of %d rows", sent, row, column, len(rows))
		}
		for _, l := range term.queue {
			for _, s := range l.Pasted {
				if s.From >= s.To || s.To > len(l.Text) {
					t.Errorf("%q: %+v", sent, l)
				}
			}
		}
	})
}

// BenchmarkKeyToScreen measures the time from a key to the screen while text comes in 2,000
// pieces a second, of which each is drawn.
func BenchmarkKeyToScreen(b *testing.B) {
	p := sit(b, 80, 24)
	term := p.opens(Options{})
	stop := make(chan struct{})
	var writes sync.WaitGroup
	writes.Go(func() {
		tick := time.NewTicker(time.Second / 2000)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				text := "word "
				if i%15 == 14 {
					text = "word\n"
				}
				_, _ = io.WriteString(term, text)
			}
		}
	})
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		text := fmt.Sprintf("k%dk", i)
		p.types("\x15" + text[:len(text)-1])
		begun := time.Now()
		p.types("k")
		p.sees("> " + text)
		all = append(all, time.Since(begun))
	}
	close(stop)
	writes.Wait()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "ms-max")
}

// A terminal that is resized is drawn again as it is now; one that is suspended is given
// back meanwhile; a signal that ends the program ends the input.
func TestSignals(t *testing.T) {
	p := sit(t, 80, 24)
	term := p.opens(Options{})
	var raised []syscall.Signal
	term.raise = func(s syscall.Signal) { raised = append(raised, s) }
	mode := func() uint32 {
		now, err := unix.IoctlGetTermios(int(p.slave.Fd()), terminalGet)
		if err != nil {
			t.Fatal(err)
		}
		return now.Lflag & unix.ICANON
	}
	p.types("some words that are longer than the terminal will be")
	p.sees("will be")
	p.resize(30, 10)
	term.handle(syscall.SIGWINCH)
	p.sees("\x1b[A") // the rows that the terminal has wrapped
	p.sees("> some words that are longer ")
	if term.Columns() != 30 {
		t.Errorf("it has %d columns", term.Columns())
	}
	term.handle(syscall.SIGTSTP)
	p.sees(pasteOff)
	if mode() == 0 || !slices.Equal(raised, []syscall.Signal{syscall.SIGSTOP}) {
		t.Errorf("a suspended terminal is raw, and raised was %v", raised)
	}
	term.handle(syscall.SIGCONT)
	p.sees(pasteOn)
	if mode() != 0 {
		t.Error("it is not raw again")
	}
	done := term.Work()
	term.handle(os.Interrupt)
	done()
	p.types("!\r")
	if got := next(t, term); got.Text != "some words that are longer than the terminal will be!" {
		t.Errorf("got %q: an interrupt of the work has emptied the line", got.Text)
	}
	p.types("gone")
	p.sees("gone")
	term.handle(os.Interrupt)
	p.types("x\r")
	if got := next(t, term); got.Text != "x" {
		t.Errorf("got %q: an interrupt does not empty the line", got.Text)
	}
	term.handle(syscall.SIGHUP)
	if _, err := term.Next(t.Context()); err != (SignalError{syscall.SIGHUP}) { //nolint:errorlint // a value of its own
		t.Errorf("the end is %v", err)
	}
}
