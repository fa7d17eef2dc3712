package httpapi

import "io"

// Body is a request made of pieces, which are neither copied nor changed while they may be
// read: a history only grows after the bytes that a request was given, and the bytes
// around it are fixed for the run.
type Body [][]byte

// Size in bytes.
func (b Body) Size() (n int64) {
	for _, p := range b {
		n += int64(len(p))
	}
	return n
}

// Reader reads the pieces one after the other.
func (b Body) Reader() io.ReadCloser { return &reader{pieces: b} }

type reader struct {
	pieces [][]byte
	off    int // in the first piece
}

func (r *reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.pieces) > 0 {
		k := copy(p[n:], r.pieces[0][r.off:])
		n, r.off = n+k, r.off+k
		if r.off == len(r.pieces[0]) {
			r.pieces, r.off = r.pieces[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *reader) Close() error { return nil }
