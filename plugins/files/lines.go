package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLine is how many characters of a line are shown.
const maxLine = 2000

// lines reads lines of any length in constant memory.
type lines struct {
	r   *bufio.Reader
	buf []byte
}

// skip passes over n lines and returns how many there were.
func (l *lines) skip(n int) (int, error) {
	done, open := 0, false
	for done < n {
		part, err := l.r.ReadSlice('\n')
		switch {
		case err == nil:
			done, open = done+1, false
		case errors.Is(err, bufio.ErrBufferFull):
			open = true
		case errors.Is(err, io.EOF):
			if open || len(part) > 0 {
				done++
			}
			return done, io.EOF
		default:
			return done, err
		}
	}
	return done, nil
}

// next returns a line without its end, and io.EOF after the last one.
func (l *lines) next() (string, error) {
	l.buf = l.buf[:0]
	total := 0
	for {
		part, err := l.r.ReadSlice('\n')
		total += len(part)
		// One character has at most four bytes; two more for the line's end.
		if room := maxLine*utf8.UTFMax + 2 - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || total == 0) {
			return "", err
		}
		break
	}
	return clip(l.buf, total), nil
}

// clip makes one line to show of its first bytes and its full length.
func clip(head []byte, total int) string {
	whole := len(head) == total
	head = bytes.TrimSuffix(bytes.TrimSuffix(head, []byte("\n")), []byte("\r"))
	text := readable(head)
	kept, cut := shorten(text, maxLine)
	switch {
	case !whole:
		return fmt.Sprintf("%s… (line cut, %d bytes in all)", kept, total)
	case cut > 0:
		return fmt.Sprintf("%s… (line cut, %d more characters)", kept, cut)
	}
	return text
}
