package openai

import "io"

// body reads a request from its two pieces, history and end. Neither is copied
// and neither is ever changed while somebody may read it: the history only
// grows behind the bytes a request was given, and the end is fixed for the run.
type body struct {
	pieces [2][]byte
	at     int
	off    int
}

func newBody(history, end []byte) *body { return &body{pieces: [2][]byte{history, end}} }

func (b *body) size() int64 { return int64(len(b.pieces[0]) + len(b.pieces[1])) }

func (b *body) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && b.at < len(b.pieces) {
		k := copy(p[n:], b.pieces[b.at][b.off:])
		n, b.off = n+k, b.off+k
		if b.off == len(b.pieces[b.at]) {
			b.at, b.off = b.at+1, 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }
