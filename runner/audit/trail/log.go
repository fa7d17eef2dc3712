package trail

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/runner/statedir"
)

// maxRecord bounds a record; one has lists of a hundred names at most.
const maxRecord = 16 << 20

// Log is a log that is there, read next to the projection: it must be the same, or the
// beginning of it.
type Log struct {
	file *os.File
	in   *bufio.Reader
	buf  []byte

	// Absent is set where there is no log.
	Absent bool
	// Records and Size of what is as the projection has it.
	Records, Size int64
	// Missing counts the records of the projection behind it, and Torn the bytes of the
	// first of them that are there.
	Missing, Torn int64
	// Extra are bytes behind the last record of the projection; see End.
	Extra int64
}

// DifferenceError is the first byte of a log that is not as the projection of the journal.
type DifferenceError struct {
	// Line from 1 and Offset from 0 in the log.
	Line   int64
	Offset int64
	// Expected and Found are the text from there on, shortened.
	Expected, Found string
}

func (d *DifferenceError) Error() string {
	return fmt.Sprintf("%s:%d: byte %d: expected %s, found %s", audit.FileName, d.Line, d.Offset, d.Expected, d.Found)
}

// OpenLog opens the log in the folder of a run. The caller closes it.
func OpenLog(dir string) (*Log, error) {
	f, err := statedir.OpenFile(filepath.Join(dir, audit.FileName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return &Log{Absent: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	// What is written from now on belongs to events that the caller may not see.
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the audit log: %w", err), f.Close())
	}
	return &Log{file: f, in: bufio.NewReaderSize(io.LimitReader(f, info.Size()), 64<<10)}, nil
}

// Close lets go of the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Match compares the next record, one line with its newline, with what the log has. A log
// that ends before or in it is not different, but incomplete. The error is a *DifferenceError, or
// that of reading.
func (l *Log) Match(want []byte) error {
	if l.Absent || l.Missing > 0 {
		l.Missing++
		return nil
	}
	got, err := l.next()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the audit log: %w", err)
	case bytes.Equal(got, want):
		l.Records++
		l.Size += int64(len(want))
		return nil
	case err != nil && bytes.HasPrefix(want, got):
		l.Missing, l.Torn = 1, int64(len(got))
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return &DifferenceError{Line: l.Records + 1, Offset: l.Size + int64(at), Expected: shown(want[at:]), Found: shown(got[at:])}
}

// next is the next line with its newline, or what is left with io.EOF.
func (l *Log) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		piece, err := l.in.ReadSlice('\n')
		if l.buf = append(l.buf, piece...); !errors.Is(err, bufio.ErrBufferFull) || len(l.buf) > maxRecord {
			return l.buf, err
		}
	}
}

// End is called behind the last record of the projection.
func (l *Log) End() error {
	if l.Absent || l.Missing > 0 {
		return nil
	}
	n, err := io.Copy(io.Discard, l.in)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	l.Extra = n
	return nil
}

// shown is the beginning of a text, for an error.
func shown(b []byte) string {
	const most = 80
	if len(b) == 0 {
		return "the end of the file"
	}
	if len(b) > most {
		return fmt.Sprintf("%q and %d bytes more", b[:most], len(b)-most)
	}
	return fmt.Sprintf("%q", b)
}
