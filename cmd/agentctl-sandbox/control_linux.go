package main

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// control is the socket to the runner. Messages keep their boundaries, so that
// several threads may send.
type control struct {
	fd  int
	buf []byte
}

// maxFiles is the most descriptors a message brings: stdin, stdout, stderr and
// the checked program.
const maxFiles = 4

// receive returns one message and the descriptors that came with it; io.EOF when
// the runner is gone. The bytes are valid until the next call.
func (c *control) receive() ([]byte, []int, error) {
	if c.buf == nil {
		c.buf = make([]byte, spec.MaxMessage+1)
	}
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(c.fd, c.buf, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, nil, err
		case n == 0:
			return nil, nil, io.EOF
		}
		files := rights(oob[:oobn])
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			closeAll(files)
			return nil, nil, spec.ErrTooLarge
		}
		return c.buf[:n], files, nil
	}
}

func rights(oob []byte) (files []int) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			files = append(files, fds...)
		}
	}
	return files
}

// maxError bounds the text of an error, and with it an answer.
const maxError = 4 << 10

// send sends a message with descriptors. When it cannot be sent the runner is gone,
// which the next receive will notice.
func (c *control) send(m *spec.Reply, fds ...int) {
	if len(m.Error) > maxError {
		m.Error = m.Error[:maxError]
	}
	b, err := spec.Encode(m)
	if err != nil {
		return
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(c.fd, b, oob, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
