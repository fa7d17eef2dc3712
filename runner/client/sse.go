package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxRecord bounds one record of a stream, and so each of its lines. An event of a
// journal has at most 16 MiB.
const maxRecord = 17 << 20

// errTooLong means that a record of a stream is larger than any that a control
// plane sends.
var errTooLong = errors.New("a record of its stream is larger than 17 MiB")

// records reads server-sent events, as far as the streams of a control plane
// use them: type and id are in the data, too.
type records struct {
	in   *bufio.Reader
	data []byte
	// heard is called for every line: also a comment shows that the connection
	// works.
	heard func()
}

func newRecords(r io.Reader, heard func()) *records {
	return &records{in: bufio.NewReaderSize(r, 64<<10), heard: heard}
}

// next returns the data of the next record; it is valid until the next call. A
// record that was cut off by the end of the stream is dropped: io.EOF.
func (r *records) next() ([]byte, error) {
	r.data = r.data[:0]
	for some := false; ; {
		at := len(r.data)
		if err := r.line(); err != nil {
			return nil, err
		}
		r.heard()
		line := r.data[at:]
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && some:
			return r.data[:at-1], nil // without the last line break
		case string(name) != "data":
			r.data = r.data[:at]
		default:
			some = true
			value = bytes.TrimPrefix(value, []byte(" "))
			r.data = append(append(r.data[:at], value...), '\n')
		}
	}
}

// line appends the next line, without its end.
func (r *records) line() error {
	for start := len(r.data); ; {
		piece, err := r.in.ReadSlice('\n')
		if len(r.data)+len(piece) > maxRecord {
			return errTooLong
		}
		r.data = append(r.data, piece...)
		switch {
		case err == nil:
			r.data = r.data[:len(r.data)-1]
			if n := len(r.data); n > start && r.data[n-1] == '\r' {
				r.data = r.data[:n-1]
			}
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
