package files

import (
	"bytes"
	binaryorder "encoding/binary"
	"fmt"
	"math/bits"
	"net/http"
	"strings"
	"unicode/utf8"
)

// sniffLen is how much of a file decides whether it is text.
const sniffLen = 8192

// bom is the mark some editors put before UTF-8 text.
var bom = []byte("\xef\xbb\xbf")

// attachment returns the media type of a file that people look at rather than
// read: an image or a PDF.
func attachment(head []byte) (string, bool) {
	kind := http.DetectContentType(head)
	switch {
	case kind == "application/pdf":
		return kind, true
	case strings.HasPrefix(kind, "image/"):
		// Some image signatures are two letters: text may begin with them.
		return kind, binary(head)
	}
	return "", false
}

// binary reports whether data is not text: a NUL, or more than 30 % control bytes.
func binary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	most := len(data) * 3 / 10
	control := bytes.Count(data, []byte{0x7f})
	if control+belowBlank(data) <= most {
		return false
	}
	for _, b := range data {
		if b < ' ' && !strings.ContainsRune("\n\r\t\f\b\x1b", rune(b)) {
			control++
		}
	}
	return control > most
}

// belowBlank counts the bytes below the blank, line ends included, eight at a time: most
// data has so few of them that it is text, whichever they are.
func belowBlank(data []byte) int {
	const low = 0x7f7f7f7f7f7f7f7f
	n := 0
	for ; len(data) >= 8; data = data[8:] {
		high := binaryorder.LittleEndian.Uint64(data) & 0xe0e0e0e0e0e0e0e0 // a byte below the blank is 0 now
		n += bits.OnesCount64(^(high&low + low | high | low))
	}
	for _, b := range data {
		if b < ' ' {
			n++
		}
	}
	return n
}

// binaryKind describes data that is binary.
func binaryKind(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "UTF-16 text"
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return "an ELF program"
	}
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		return "binary data"
	}
	return kind
}

// readable makes bytes of unknown origin valid text without NUL.
func readable(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// shorten keeps the first n characters.
func shorten(s string, n int) (kept string, cut int) {
	if len(s) <= n {
		return s, 0
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i], utf8.RuneCountInString(s[i:])
		}
		count++
	}
	return s, 0
}

// count writes "1 file", "2 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	if before, ok := strings.CutSuffix(noun, "ry"); ok {
		return fmt.Sprintf("%d %sries", n, before)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
