package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/statedir"
)

// Line is an event as it is in the file.
type Line struct {
	Seq int64
	// File in the run's folder, Number of the line in it from 1, and Offset of its first
	// byte from 0.
	File   string
	Number int
	Offset int64
	// Prev is the hash of the line before, "" on the first.
	Prev string
	// Type of the event, and Text of the line without its newline; both are valid until
	// visit returns.
	Type []byte
	Text []byte
}

// checkRoom is how much of a file is read at once.
const checkRoom = 1 << 20

// Check walks a journal as Verify does, and demands more: nothing but what a Writer has
// written is accepted. A line is compared byte by byte with what its place in the chain
// requires, without being decoded; so an unchanged journal costs little more than its
// hashes. Damage is a *CorruptError with the byte, and what was expected there. Of a
// process that writes the journal meanwhile, Check sees what was complete when it came to
// the end.
//
// Beyond Verify it finds: lines or bytes behind the end of a journal that was closed, a
// head.json that was changed without effect or is missing, a file under the name of another
// day, and an empty file in the middle.
func Check(ctx context.Context, dir string, visit func(Line) error) (Report, error) {
	head, err := readHead(dir)
	if err != nil {
		return Report{}, err
	}
	files, err := dayFiles(dir)
	if err != nil {
		return Report{}, err
	}
	c := checker{report: Report{Files: files}, dir: dir, head: head, visit: visit}
	for i, name := range files {
		if err := c.read(ctx, name, i == len(files)-1); err != nil {
			return c.report, err
		}
	}
	return c.report, c.end()
}

// checker reads one file after the other.
type checker struct {
	report Report
	dir    string
	head   headFile
	visit  func(Line) error
	// before is the line that was read last.
	before Line
	// behind is the first line behind the end at which the journal was closed.
	behind *Line
	// named is the hash of the event that head.json names.
	named string
	// synced is set once there is an event that is recorded only after a Sync.
	synced bool
	want   []byte
}

func (c *checker) read(ctx context.Context, name string, last bool) error {
	f, err := statedir.OpenFile(filepath.Join(c.dir, name), os.O_RDONLY)
	if errors.Is(err, statedir.ErrNotRegular) {
		return &CorruptError{File: name, Problem: "it is not a regular file", Expected: "a file", Found: "something else"}
	}
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	in := bufio.NewReaderSize(f, int(min(checkRoom, info.Size()+1)))
	var buf []byte
	offset := int64(0)
	for number := 1; ; number++ {
		if number%256 == 1 && ctx.Err() != nil {
			return fmt.Errorf("read journal %s: %w", name, context.Cause(ctx))
		}
		text, err := readLine(in, &buf)
		at := Line{Seq: c.report.Events + 1, File: name, Number: number, Offset: offset, Prev: c.report.Head, Text: text}
		switch {
		case errors.Is(err, errLineTooLong):
			return at.damaged(0, fmt.Sprintf("a line of at most %d bytes", MaxLine), "a longer one", "a line is too long")
		case errors.Is(err, io.EOF) && len(text) == 0:
			return c.endOfFile(at, last)
		case errors.Is(err, io.EOF):
			return c.torn(at, len(text), "the last line has no end", last)
		case err != nil:
			return fmt.Errorf("read journal %s: %w", name, err)
		}
		offset += int64(len(text)) + 1
		if err := c.line(at, in); err != nil || c.report.Torn != nil {
			return err
		}
	}
}

// endOfFile is called behind the last line of a file.
func (c *checker) endOfFile(at Line, last bool) error {
	if at.Number == 1 && !last {
		return at.damaged(0, "events", "an empty file", "the file is empty, but another file follows")
	}
	return nil
}

// torn notes an incomplete last line.
func (c *checker) torn(at Line, size int, problem string, last bool) error {
	if !last {
		return at.damaged(0, "a complete line", problem, problem+", but another file follows")
	}
	c.report.Torn = &Torn{File: at.File, Line: at.Number, Offset: at.Offset, Bytes: int64(size)}
	return nil
}

// line checks one complete line.
func (c *checker) line(at Line, in *bufio.Reader) error {
	r := &c.report
	at.Type = c.quick(at)
	if at.Type == nil {
		e, err := c.slow(at, in)
		if err != nil && c.head.closed() && at.Seq == c.head.Seq+1 && !c.written() {
			return at.damaged(0, fmt.Sprintf("the end of the file: the journal was closed with event %d", c.head.Seq), "another line", "bytes follow the end at which the journal was closed")
		}
		if err != nil || r.Torn != nil {
			return err
		}
		at.Type = []byte(e.Type())
	}
	if at.Number == 1 {
		if err := c.day(at); err != nil {
			return err
		}
	}
	if c.head.Seq > 0 && at.Seq == c.head.Seq+1 {
		if c.named = r.Head; c.named != c.head.Hash {
			return c.before.damaged(0, c.head.Hash, c.named, fmt.Sprintf("event %d was changed after it was written: head.json names another hash of it", c.before.Seq))
		}
		if c.head.closed() {
			first := at
			first.Text = nil
			c.behind = &first
		}
	}
	c.synced = c.synced || string(at.Type) == string(event.TypeModelResponse) || string(at.Type) == string(event.TypeRunFinished)
	r.Events, r.Head = at.Seq, hashLine(at.Text)
	if err := c.visit(at); err != nil {
		return err
	}
	at.Text, at.Type = nil, nil
	c.before = at
	return nil
}

// The parts of a line, as event.Event writes them, that its place in the chain requires.
const (
	seqPart  = `{"seq":`
	timePart = `,"time":"`
	typePart = `","type":"`
	runPart  = `","run":"`
	prevPart = `,"prev":"`
	endPart  = `"}`
)

// quick returns the type of a line that is as a Writer writes it: with its number, of this
// run, and with the hash of the line before; nil if it may not be.
func (c *checker) quick(at Line) []byte {
	b := c.want[:0]
	b = append(strconv.AppendInt(append(b, seqPart...), at.Seq, 10), timePart...)
	if c.want = b; !bytes.HasPrefix(at.Text, b) {
		return nil
	}
	rest := at.Text[len(b):]
	if len(rest) < len(event.TimeFormat) {
		return nil
	}
	rest, ok := bytes.CutPrefix(rest[len(event.TimeFormat):], []byte(typePart))
	n := bytes.IndexByte(rest, '"')
	if !ok || n <= 0 {
		return nil
	}
	kind := rest[:n]
	if rest, ok = bytes.CutPrefix(rest[n:], []byte(runPart)); !ok {
		return nil
	}
	if n = bytes.IndexByte(rest, '"'); n <= 0 {
		return nil
	}
	run := rest[:n]
	if c.report.Run == "" && at.Seq == 1 && validRun(string(run)) {
		c.report.Run = string(run)
	}
	if string(run) != c.report.Run {
		return nil
	}
	if at.Seq == 1 {
		if bytes.HasSuffix(rest, []byte(endPart)) && bytes.Contains(rest[max(0, len(rest)-prevRoom):], []byte(prevPart)) {
			return nil // a first event with a predecessor
		}
		return kind
	}
	b = append(append(append(b[:0], prevPart...), c.report.Head...), endPart...)
	if c.want = b; !bytes.HasSuffix(rest, b) {
		return nil
	}
	return kind
}

// prevRoom is the length of the end of a line that holds the hash of the one before.
const prevRoom = len(prevPart) + len(hashPrefix) + 64 + len(endPart)

// prevOf is the hash of the line before, as the end of a line names it; "" if it does not.
func prevOf(line []byte) string {
	if len(line) < prevRoom {
		return ""
	}
	b, ok := bytes.CutPrefix(line[len(line)-prevRoom:], []byte(prevPart))
	if b, end := bytes.CutSuffix(b, []byte(endPart)); ok && end {
		return string(b)
	}
	return ""
}

// slow decodes a line that is not as a Writer writes it, and says why. One that another
// program may have written so, with other white space for example, is accepted.
func (c *checker) slow(at Line, in *bufio.Reader) (event.Event, error) {
	var e event.Event
	r := &c.report
	if err := e.UnmarshalJSON(at.Text); err != nil {
		if _, more := in.Peek(1); errors.Is(more, io.EOF) && at.File == r.Files[len(r.Files)-1] {
			return e, c.torn(at, len(at.Text)+1, "the last line is not an event", true)
		}
		byteAt := int64(0)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			byteAt = max(0, syntax.Offset-1)
		}
		return e, at.damaged(byteAt, fmt.Sprintf("event %d", at.Seq), "no event", fmt.Sprintf("not an event: %v", err))
	}
	switch {
	case e.Seq != at.Seq:
		return e, at.damaged(int64(len(seqPart)), fmt.Sprintf("event %d", at.Seq), fmt.Sprintf("event %d", e.Seq), c.misplaced(at.Seq, e.Seq))
	case e.Prev != r.Head:
		return e, c.unchained(at, e, in)
	case e.Run != r.Run && r.Run != "":
		return e, at.damaged(0, "an event of run "+r.Run, "one of run "+e.Run, fmt.Sprintf("event %d is of another run", e.Seq))
	}
	if r.Run == "" {
		r.Run = e.Run
	}
	return e, nil
}

func (c *checker) misplaced(want, found int64) string {
	switch {
	case found == want+1:
		return fmt.Sprintf("event %d is missing", want)
	case found > want:
		return fmt.Sprintf("events %d to %d are missing, or the order was changed", want, found-1)
	}
	return fmt.Sprintf("event %d comes a second time, or the order was changed", found)
}

// unchained finds out which of two lines was changed: the one before, or this one, which
// does not name its hash. What follows knows the hash of this one.
func (c *checker) unchained(at Line, e event.Event, in *bufio.Reader) error {
	own, wants := hashLine(at.Text), cmp.Or(e.Prev, "no hash")
	place := int64(max(0, len(at.Text)-prevRoom+len(prevPart)))
	next := c.following(at, in)
	switch {
	case at.Seq == 1:
		return at.damaged(place, "no hash of an event before", e.Prev, "the first event names one before it: the beginning of the journal is missing")
	case next == own:
		return c.before.damaged(0, wants, c.report.Head, fmt.Sprintf("event %d was changed after it was written: event %d names another hash of it", c.before.Seq, at.Seq))
	case next != "":
		return at.damaged(place, c.report.Head, wants, fmt.Sprintf("event %d was changed after it was written: it does not name the hash of event %d, nor has it the hash that the next line names", at.Seq, c.before.Seq))
	}
	return at.damaged(place, c.report.Head, wants, fmt.Sprintf("event %d, or the hash of it in event %d, was changed", c.before.Seq, at.Seq))
}

// following is the hash of a line as what comes behind it names it: the next line, in the
// next file too, or the head; "" where nothing does.
func (c *checker) following(at Line, in *bufio.Reader) string {
	var buf []byte
	if text, err := readLine(in, &buf); err == nil {
		return prevOf(text)
	}
	for _, name := range c.report.Files {
		if name <= at.File {
			continue
		}
		f, err := statedir.OpenFile(filepath.Join(c.dir, name), os.O_RDONLY)
		if err != nil {
			return ""
		}
		text, err := readLine(bufio.NewReader(f), &buf)
		_ = f.Close() // nothing was written
		if err == nil {
			return prevOf(text)
		}
	}
	if c.head.Seq == at.Seq {
		return c.head.Hash
	}
	return ""
}

// day checks that a file begins with an event of its day.
func (c *checker) day(at Line) error {
	from := bytes.Index(at.Text, []byte(timePart))
	if from < 0 || len(at.Text) < from+len(timePart)+len(time.DateOnly) {
		return nil // as another program has written it
	}
	from += len(timePart)
	text := string(at.Text[from : from+len(time.DateOnly)])
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || fileOf(day.Format(dayLayout)) != at.File {
		return at.damaged(int64(from), "an event of the day in the name of the file", text, "the file has the name of another day")
	}
	return nil
}

// end compares the end of the journal with its head.
func (c *checker) end() error {
	r, h := &c.report, c.head
	switch {
	case c.behind != nil && !c.written():
		return c.behind.damaged(0, fmt.Sprintf("the end of the file: the journal was closed with event %d", h.Seq), fmt.Sprintf("%d more events", r.Events-h.Seq),
			"events follow the end at which the journal was closed: they were appended, or a crash of the machine cut off the process that continued it")
	case r.Torn != nil && h.closed() && r.Events == h.Seq && !c.written():
		return r.Torn.line().damaged(0, fmt.Sprintf("the end of the file: the journal was closed with event %d", h.Seq), fmt.Sprintf("%d more bytes", r.Torn.Bytes), "bytes follow the end at which the journal was closed")
	case h.Seq == 0:
		return c.headless()
	case h.Had > 0:
		return headDamaged(fmt.Sprintf("%d events", h.Had), fmt.Sprintf("%d events", h.Seq), "the journal was cut or its last line was changed", r.Events, h.Had-h.Seq)
	case r.Events < h.Seq && r.Torn != nil:
		e := r.Torn.line().damaged(0, fmt.Sprintf("event %d", r.Events+1), fmt.Sprintf("%d bytes that are no event", r.Torn.Bytes), fmt.Sprintf("event %d was changed or cut after it was written", r.Events+1))
		e.AtEnd, e.Kept, e.Missing = true, r.Events, h.Seq-r.Events
		return e
	case r.Events < h.Seq:
		return headDamaged(fmt.Sprintf("%d events, the last with the hash %s", h.Seq, h.Hash), fmt.Sprintf("%d events", r.Events), fmt.Sprintf("the journal was cut: it had %d events and now ends with event %d", h.Seq, r.Events), r.Events, h.Seq-r.Events)
	case r.Events == h.Seq && r.Head != h.Hash:
		e := c.before.damaged(0, h.Hash, r.Head, fmt.Sprintf("event %d was changed after it was written: head.json names another hash of it", h.Seq))
		e.AtEnd, e.Kept = true, r.Events
		return e
	}
	r.Vouched = h.Seq
	r.Anchored = h.closed() && r.Events == h.Seq && r.Torn == nil
	return nil
}

// headless judges a journal without a head: every process that gets as far as an answer of
// the model has written one.
func (c *checker) headless() error {
	if c.report.Events == 0 || !c.synced || c.written() {
		return nil
	}
	return headDamaged("the head of the journal", "no file, or an empty one",
		"head.json is missing: nothing vouches for the last line. It was removed, or lost by a crash of the machine; agentctl resume writes it again", c.report.Events, 0)
}

// written reports whether a process writes the journal, or has done so since its head was
// read.
func (c *checker) written() bool {
	if Held(c.dir) {
		return true
	}
	now, err := readHead(c.dir)
	return err == nil && now.anchor != c.head.anchor
}

func headDamaged(expected, found, problem string, kept, missing int64) *CorruptError {
	return &CorruptError{File: anchorFile, Problem: problem, Expected: expected, Found: found, AtEnd: true, Kept: kept, Missing: missing}
}

// damaged is the error of a line at a byte of it.
func (l Line) damaged(byteAt int64, expected, found, problem string) *CorruptError {
	return &CorruptError{File: l.File, Line: l.Number, Offset: l.Offset + byteAt, Problem: problem, Expected: expected, Found: found}
}

func (t *Torn) line() Line { return Line{File: t.File, Number: t.Line, Offset: t.Offset} }

// headFile is head.json as it is.
type headFile struct{ anchor }

func (h headFile) closed() bool { return h.Seq > 0 && !h.Open }

// readHead reads head.json and accepts nothing but what a Writer has written: a changed
// byte that says the same is found.
func readHead(dir string) (headFile, error) {
	raw, err := readCapped(filepath.Join(dir, anchorFile), 4096)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0 {
		return headFile{}, nil
	}
	if errors.Is(err, statedir.ErrNotRegular) {
		return headFile{}, headDamaged("a file", "something else", "it is not a regular file", 0, 0)
	}
	if err != nil {
		return headFile{}, fmt.Errorf("read head: %w", err)
	}
	a, err := parseAnchor(raw)
	if err != nil {
		return headFile{}, headDamaged("a line with the number and the hash of an event", "none", err.Error(), 0, 0)
	}
	if a.Open || a.Had > 0 {
		return headFile{a}, nil // its other line may be half written
	}
	want, err := a.line()
	if err != nil {
		return headFile{}, err
	}
	if unsummed(bytes.TrimSuffix(raw, []byte("\n"))) {
		want = fmt.Appendf(nil, "{\"seq\":%d,\"hash\":%q}\n", a.Seq, a.Hash)
	}
	if at := differs(raw, want); at >= 0 {
		return headFile{}, &CorruptError{
			File: anchorFile, Line: 1, Offset: int64(at), Problem: "the head was changed", Expected: strconv.Quote(string(want)), Found: strconv.Quote(string(raw)), AtEnd: true,
		}
	}
	return headFile{a}, nil
}

// differs is the place of the first byte in which two texts differ; -1 is none.
func differs(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}
