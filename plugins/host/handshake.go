package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// maxLine bounds the handshake line; a socket's path has at most 107 bytes.
const maxLine = 4 << 10

// coreVersion is go-plugin's own version, the first field of the line.
const coreVersion = 1

// handshake is the part of the line that matters here.
type handshake struct{ addr string }

// line is the only form in which go-plugin sees a handshake. The sixth field, a
// certificate, is left out: we do not use TLS inside a 0700 folder.
func (h handshake) line() string {
	return fmt.Sprintf("%d|%d|unix|%s|grpc\n", coreVersion, toolpb.Version, h.addr)
}

// parseHandshake judges the first line a program printed, read with a buffer of
// maxLine, and the error of reading it.
func parseHandshake(line []byte, readErr error) (handshake, *Error) {
	bad := func(kind Kind, format string, args ...any) (handshake, *Error) {
		return handshake{}, &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	text := strings.TrimSpace(string(line))
	switch {
	case errors.Is(readErr, bufio.ErrBufferFull):
		return bad(KindNotPlugin, "it is not a plugin program: it printed a line over %d bytes, beginning %q", maxLine, excerpt(text))
	case readErr != nil && text == "":
		if errors.Is(readErr, io.EOF) {
			return bad(KindNotPlugin, "it is not a plugin program: it ended without a word on stdout")
		}
		return bad(KindHandshake, "read its stdout: %w", readErr)
	}
	f := strings.Split(text, "|")
	if len(f) < 5 || !digits(f[0]) || !digits(f[1]) {
		return bad(KindNotPlugin, "it is not a plugin program: it printed %q where a plugin says how to reach it", excerpt(text))
	}
	switch {
	case f[0] != strconv.Itoa(coreVersion):
		return bad(KindVersion, "it speaks version %s of go-plugin's handshake, this agentctl %d: rebuild it with a newer SDK", f[0], coreVersion)
	case f[1] != strconv.Itoa(toolpb.Version):
		return bad(KindVersion, "it speaks version %s of the tool protocol, this agentctl %d: rebuild it with the SDK of this agentctl", f[1], toolpb.Version)
	case f[2] != "unix":
		return bad(KindHandshake, "it listens on network %q, not on a unix socket", excerpt(f[2]))
	case f[4] != "grpc":
		return bad(KindHandshake, "it speaks %q, not grpc", excerpt(f[4]))
	case f[3] == "" || strings.ContainsAny(f[3], "\x00\r\n"):
		return bad(KindHandshake, "its socket's path %q is none", excerpt(f[3]))
	}
	return handshake{addr: f[3]}, nil
}

// digits reports whether s is written like the number of a version.
func digits(s string) bool {
	return s != "" && len(s) < 6 && strings.Trim(s, "0123456789") == ""
}

// excerpt is the readable beginning of foreign text.
func excerpt(s string) string {
	const most = 120
	s = clean(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
