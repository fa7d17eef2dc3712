package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// A process can only lay a filter on itself, and one that is started by Go cannot have had
// one laid on it before: while its program is being executed, the thread that started it
// waits without giving up its processor, and so may the whole Go program, which would have
// to answer the notification of that execution. So a launcher comes between: a program of
// some thirty instructions, which is written here and has no file name.

// plan is what distinguishes one launcher from another.
type plan struct {
	scope Scope
	// rules, socket and own are those of code.
	rules, socket, own int
}

// launchers are those that have been made; they are kept, since they never change.
type launchers struct {
	mu   sync.Mutex
	made map[plan]*os.File
}

var kept = &launchers{made: map[plan]*os.File{}}

// file returns the file of a launcher, and whether the caller has to close it.
func (l *launchers) file(p plan) (f *os.File, own bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.made[p]; f != nil {
		return f, false, nil
	}
	f, sealed, err := program(p.bytes())
	if err != nil {
		return nil, false, fmt.Errorf("make the launcher of a command that is recorded: %w", err)
	}
	if sealed { // no other process can change it
		l.made[p] = f
	}
	return f, !sealed, nil
}

// program returns a file without a name that can be executed, open for reading only.
func program(text []byte) (f *os.File, sealed bool, err error) {
	if text == nil {
		return nil, false, unix.ENOEXEC
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	fd, err := unix.MemfdCreate("agentctl-launcher", unix.MFD_CLOEXEC|unix.MFD_EXEC|unix.MFD_ALLOW_SEALING)
	sealed = err == nil
	if err != nil { // an old kernel, or a sandbox whose memory is bounded by a filter
		fd, err = unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o500)
	}
	if err != nil {
		return nil, false, err
	}
	w := os.NewFile(uintptr(fd), "launcher")
	defer w.Close()
	if _, err := w.Write(text); err != nil {
		return nil, false, err
	}
	if sealed {
		if _, err := unix.FcntlInt(w.Fd(), unix.F_ADD_SEALS, seals); err != nil {
			return nil, false, err
		}
	}
	// What is open for writing cannot be executed.
	f, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	return f, sealed, err
}

// Where a launcher is in memory: its instructions with what they only read, and what they
// write. A page has at most 64 KiB.
const (
	textAt     = 0x400000
	dataAt     = 0x411000
	dataOffset = 0x1000
)

// bytes is the launcher as an ELF file; nil for other architectures.
func (p plan) bytes() []byte {
	const header, entry, programs = 64, 56, 2
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	list := filter(p.scope)
	// What is read: the code, whose length does not depend on the addresses, the filter, its
	// descriptor, and the vector of what is sent. What is written: the results, the control
	// message, and the messages.
	const results, resultsSize = dataAt, 8
	const control, controlSize = dataAt + 16, 24
	const with, without, message = control + controlSize, control + controlSize + 56, 56
	c := code{rules: p.rules, socket: p.socket, own: p.own, results: results, listener: control + 16, with: with, without: without, program: textAt}
	start := uint32(header + entry*programs)
	rules := align(start + uint32(len(c.bytes()))) //nolint:gosec // some hundred bytes
	descriptor := rules + uint32(8*len(list))      //nolint:gosec // some hundred instructions
	vector := descriptor + 16
	c.program = textAt + descriptor
	text := c.bytes()
	if text == nil {
		return nil
	}
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // of fixed size, into memory
		}
	}
	to := func(offset uint32) { put(make([]byte, int(offset)-b.Len())) }
	size := uint64(vector + 16)
	put([16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, uint16(2), machine, uint32(1), uint64(textAt+start), uint64(header), uint64(0), uint32(0),
		uint16(header), uint16(entry), uint16(programs), uint16(0), uint16(0), uint16(0))
	put(uint32(1), uint32(5), uint64(0), uint64(textAt), uint64(textAt), size, size, uint64(0x10000)) // read and execute
	const data = uint64(without + message - dataAt)
	put(uint32(1), uint32(6), uint64(dataOffset), uint64(dataAt), uint64(dataAt), data, data, uint64(0x10000)) // read and write
	b.Write(text)
	to(rules)
	for _, f := range list {
		put(f.Code, f.Jt, f.Jf, f.K)
	}
	put(uint64(len(list)), uint64(textAt+rules)) // struct sock_fprog: its length has 16 bits
	put(uint64(results), uint64(resultsSize))
	to(dataOffset)
	put(make([]byte, control-dataAt))
	put(uint64(20), uint32(unix.SOL_SOCKET), uint32(unix.SCM_RIGHTS), uint64(0))
	for _, c := range []uint64{controlSize, 0} {
		put(uint64(0), uint64(0), uint64(textAt+vector), uint64(1), uint64(control), c, uint64(0)) // struct msghdr
	}
	return b.Bytes()
}

func align(n uint32) uint32 { return (n + 7) &^ 7 }
