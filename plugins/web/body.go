package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// body is what a server has sent.
type body struct {
	content []byte
	// wire is how many bytes came over the network.
	wire int64
	// cut is why the content is not all, "" if it is.
	cut string
}

// readAll reads a body and unpacks it: wire bounds the bytes that are received, most those
// that come of them. What exceeds a limit is left, and said in cut.
func readAll(resp *http.Response, wire, most int64) (body, error) {
	received := &counter{r: resp.Body, left: wire + 1}
	var src io.Reader = received
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(received)
		if errors.Is(err, io.EOF) {
			return body{}, nil
		}
		if err != nil {
			return body{}, fmt.Errorf("unpack the answer: %w", err)
		}
		src = z
	default:
		return body{}, fmt.Errorf("the answer is packed as %q, which was not asked for", brief(encoding))
	}
	var b body
	buf := bytes.NewBuffer(make([]byte, 0, min(max(resp.ContentLength, 0), wire)+bytes.MinRead))
	_, err := buf.ReadFrom(io.LimitReader(src, most+1))
	b.content, b.wire = buf.Bytes(), received.n
	switch {
	case int64(len(b.content)) > most:
		b.content, b.cut = b.content[:most], fmt.Sprintf("it has more than %d bytes, the rest was not read", most)
	case received.n > wire:
		b.cut = fmt.Sprintf("more than %d bytes were sent, the rest was not read", wire)
	case err != nil:
		return b, err
	}
	return b, nil
}

// counter reads at most a number of bytes, and then ends as if it were all.
type counter struct {
	r       io.Reader
	n, left int64
}

func (c *counter) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.n += int64(n)
	c.left -= int64(n)
	return n, err
}
