package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/statedir"
)

const dayLayout = "20060102"

func isDayFile(name string) bool {
	day := dayOf(name)
	return len(day) == len(dayLayout) && strings.Trim(day, "0123456789") == "" && name == fileOf(day)
}

func fileOf(day string) string { return "events-" + day + ".jsonl" }

func dayOf(file string) string {
	return strings.TrimSuffix(strings.TrimPrefix(file, "events-"), ".jsonl")
}

// CorruptError is where a journal is damaged. A torn last line is not damage.
type CorruptError struct {
	// File inside the run's folder, and the line in it from 1.
	File    string
	Line    int
	Problem string
	// Offset is the byte in the file, from 0, Expected what belongs there, and Found what is
	// there instead. Only Check sets them.
	Offset          int64
	Expected, Found string
	// AtEnd: only the end of the journal is damaged, and does not match head.json: Kept
	// events are left, and Missing ones were cut off. Readers report it after the last
	// event.
	AtEnd         bool
	Kept, Missing int64
}

func (e *CorruptError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// Read yields the events of the run in dir in order, beginning with number
// from, and checks the chain on its way. A last line that is not complete, as a
// crash or a writer at work leaves it, ends the sequence without an error. Any
// other error is the last thing yielded; see DamagedAtEnd.
func Read(ctx context.Context, dir string, from int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		stopped := errors.New("stopped")
		_, err := inspect(ctx, dir, func(e event.Event) error {
			if e.Seq >= from && !yield(e, nil) {
				return stopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(event.Event{}, err)
		}
	}
}

// dayFiles lists the files of a journal in the order of the chain.
func dayFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var names []string
	for _, e := range entries {
		if isDayFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// scan walks the whole chain and reports where it ends. Every line must follow
// from the one before; visit sees only lines that do.
func scan(ctx context.Context, dir string, visit func(event.Event) error) (Report, error) {
	var r Report
	files, err := dayFiles(dir)
	if err != nil {
		return r, err
	}
	r.Files = files
	for i, name := range files {
		s := scanner{report: &r, file: name, last: i == len(files)-1, visit: visit}
		if err := s.run(ctx, filepath.Join(dir, name)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// scanner reads one file of a journal.
type scanner struct {
	report *Report
	file   string
	last   bool
	visit  func(event.Event) error

	line   int
	offset int64
}

func (s *scanner) run(ctx context.Context, path string) error {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	in := bufio.NewReaderSize(f, 64<<10)
	var buf []byte
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read journal %s: %w", s.file, err)
		}
		s.line++
		line, err := readLine(in, &buf)
		switch {
		case errors.Is(err, errLineTooLong):
			return s.corrupt("a line longer than %d bytes", MaxLine)
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return s.tear(len(line), "the last line has no end")
		case err != nil:
			return fmt.Errorf("read journal %s: %w", s.file, err)
		}
		if err := s.take(in, line); err != nil {
			return err
		}
		if s.report.Torn != nil {
			return nil
		}
		s.offset += int64(len(line)) + 1
	}
}

// take checks one complete line, given without its newline.
func (s *scanner) take(in *bufio.Reader, line []byte) error {
	var e event.Event
	if err := e.UnmarshalJSON(line); err != nil {
		if _, more := in.Peek(1); more == io.EOF {
			return s.tear(len(line)+1, "the last line is not an event")
		}
		return s.corrupt("not an event: %v", err)
	}
	r := s.report
	switch {
	case e.Seq != r.Events+1:
		return s.corrupt("event %d follows event %d", e.Seq, r.Events)
	case e.Prev != r.Head:
		return s.corrupt("event %d does not continue the chain: the line before was changed", e.Seq)
	case r.Run != "" && e.Run != r.Run:
		return s.corrupt("event %d is of run %q, those before of %q", e.Seq, e.Run, r.Run)
	}
	r.Events, r.Head, r.Run = e.Seq, hashLine(line), e.Run
	return s.visit(e)
}

// tear notes a torn last line. Only the end of the last file can be torn: each
// earlier file was durable before the next one was begun.
func (s *scanner) tear(size int, problem string) error {
	if !s.last {
		return s.corrupt("%s, but another file follows", problem)
	}
	s.report.Torn = &Torn{File: s.file, Line: s.line, Offset: s.offset, Bytes: int64(size)}
	return nil
}

func (s *scanner) corrupt(format string, args ...any) error {
	return &CorruptError{File: s.file, Line: s.line, Problem: fmt.Sprintf(format, args...)}
}

var errLineTooLong = errors.New("line too long")

// readLine returns a line without its newline, or what is left with io.EOF.
// The line is valid until the next call.
func readLine(in *bufio.Reader, buf *[]byte) ([]byte, error) {
	*buf = (*buf)[:0]
	for {
		piece, err := in.ReadSlice('\n')
		if err == nil && len(*buf) == 0 {
			return piece[:len(piece)-1], nil
		}
		*buf = append(*buf, piece...)
		if len(*buf) > MaxLine+1 {
			return nil, errLineTooLong
		}
		switch {
		case err == nil:
			return (*buf)[:len(*buf)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return *buf, err
		}
	}
}
