package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// image is a file with code that the kernel or bash loads: two segments of an ELF file, one
// with what is only read, one with what is also written.
type image struct {
	// base is where it is loaded, 0 for a shared object: that is moved.
	base uint64
	data bytes.Buffer
	// moves are the places in data, as offsets, that hold an address.
	moves []uint64
}

// What is in the second segment, by offset. The first page of it is at dataOffset in the
// file; in memory it is on a page of its own whatever the size of a page is, which is 64 KiB
// at most.
const (
	dataOffset, dataPage = 0x1000, 0x11000
	pageSize             = 0x10000

	builtinAt  = 0 // struct builtin of bash: name, function, flags, long_doc, short_doc, handle
	resultsAt  = builtinAt + 6*8
	controlAt  = resultsAt + 16 // struct cmsghdr, and the descriptor
	vectorAt   = controlAt + controlLen
	withAt     = vectorAt + 16
	withoutAt  = withAt + messageLen
	programAt  = withoutAt + messageLen // struct sock_fprog
	filterAt   = programAt + 16
	controlLen = 24
	messageLen = 56 // struct msghdr
)

// Numbers of the format ELF that package debug/elf has in other forms.
const (
	elfHeader, elfProgram, elfSymbol, elfRela = 64, 56, 24, 24
	loadable, dynamicTags, stack              = 1, 2, 0x6474e551
	executable, shared                        = 2, 3
)

// plan is what code is made for.
type plan struct {
	scope Scope
	// rules, socket and own are those of code.
	rules, socket, own int
}

// code is the plan as code at an address.
func (p plan) code(at uint32) []byte {
	c := code{
		rules: p.rules, socket: p.socket, filtered: p.scope != 0, own: p.own, at: at,
		filter: dataPage + programAt, with: dataPage + withAt, without: dataPage + withoutAt, results: dataPage + resultsAt, listener: dataPage + controlAt + 16,
	}
	return c.bytes()
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // of fixed size, into memory
	}
}

// address puts the address of something in the image into its data.
func (i *image) address(of uint64) {
	i.moves = append(i.moves, uint64(i.data.Len())) //nolint:gosec // not negative
	put(&i.data, i.base+of)
}

// fill writes what the code needs, behind the structure for bash.
func (i *image) fill(scope Scope) {
	put(&i.data, uint64(0), uint64(0))                                                    // the results
	put(&i.data, uint64(20), uint32(unix.SOL_SOCKET), uint32(unix.SCM_RIGHTS), uint64(0)) // the control message
	i.address(dataPage + resultsAt)                                                       // struct iovec
	put(&i.data, uint64(8))
	for _, control := range []uint64{controlLen, 0} {
		put(&i.data, uint64(0), uint64(0))
		i.address(dataPage + vectorAt)
		put(&i.data, uint64(1))
		i.address(dataPage + controlAt)
		put(&i.data, control, uint64(0))
	}
	var list []unix.SockFilter
	if scope != 0 {
		list = filter(scope)
	}
	put(&i.data, uint64(len(list))) // its length has 16 bits
	i.address(dataPage + filterAt)
	for _, f := range list {
		put(&i.data, f.Code, f.Jt, f.Jf, f.K)
	}
}

// header is that of the file, with so many entries of the program table to come.
func (i *image) header(b *bytes.Buffer, kind uint16, start uint64, programs uint16) {
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	put(b, [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, kind, machine, uint32(1), start, uint64(elfHeader), uint64(0), uint32(0),
		uint16(elfHeader), uint16(elfProgram), programs, uint16(0), uint16(0), uint16(0))
}

func (i *image) segment(b *bytes.Buffer, kind, flags uint32, offset, at, size, align uint64) {
	put(b, kind, flags, offset, i.base+at, i.base+at, size, size, align)
}

// segments are those of text and data.
func (i *image) segments(b *bytes.Buffer, size uint64) {
	i.segment(b, loadable, 5, 0, 0, size, pageSize)                                 // read and execute
	i.segment(b, loadable, 6, dataOffset, dataPage, uint64(i.data.Len()), pageSize) //nolint:gosec // read and write
}

// whole puts the data behind the text.
func (i *image) whole(b *bytes.Buffer) []byte {
	put(b, make([]byte, dataOffset-b.Len()))
	b.Write(i.data.Bytes())
	return b.Bytes()
}

// launcher is a program that executes another one; nil for other architectures.
func (p plan) launcher() []byte {
	const start = elfHeader + 2*elfProgram
	code := p.code(start)
	if code == nil {
		return nil
	}
	i := &image{base: 0x400000}
	put(&i.data, make([]byte, resultsAt))
	i.fill(p.scope)
	var b bytes.Buffer
	i.header(&b, executable, i.base+start, 2)
	i.segments(&b, uint64(start+len(code)))
	b.Write(code)
	return i.whole(&b)
}

// object is a shared object with a command for bash; nil for other architectures.
func (p plan) object(command string) []byte {
	const programs = 4
	if p.code(0) == nil {
		return nil
	}
	symbol := command + "_struct"
	names := "\x00" + symbol + "\x00" + command + "\x00"
	i := &image{}
	const table = elfHeader + programs*elfProgram
	const hash = table + 2*elfSymbol
	const moves = hash + 5*4 + 4 // aligned to 8
	const most = 16              // of moves: more than there are
	const text = moves + most*elfRela
	code := p.code(text)
	names0 := uint64(text + len(code))
	name := names0 + uint64(len(symbol)+2)
	i.address(name)
	i.address(text)
	put(&i.data, uint64(1), uint64(0)) // flags: the command is enabled
	i.address(name)
	put(&i.data, uint64(0))
	i.fill(p.scope)
	dynamic := uint64(i.data.Len()) //nolint:gosec // not negative
	tags := []uint64{
		4, hash, // DT_HASH
		5, names0, // DT_STRTAB
		6, table, // DT_SYMTAB
		10, uint64(len(names)), // DT_STRSZ
		11, elfSymbol, // DT_SYMENT
		7, moves, // the relocations
		8, uint64(len(i.moves) * elfRela), // DT_RELASZ
		9, elfRela, // DT_RELAENT
		0, 0,
	}
	put(&i.data, tags)
	var b bytes.Buffer
	i.header(&b, shared, 0, programs)
	i.segments(&b, names0+uint64(len(names)))
	i.segment(&b, dynamicTags, 6, dataOffset+dynamic, dataPage+dynamic, uint64(8*len(tags)), 8)
	i.segment(&b, stack, 6, 0, 0, 0, 16)                                                                           // not executable
	put(&b, [elfSymbol]byte{}, uint32(1), byte(0x11), byte(0), uint16(1), uint64(dataPage+builtinAt), uint64(6*8)) // a global object
	put(&b, []uint32{1, 2, 1, 0, 0, 0})                                                                            // one chain with the one symbol
	relative := map[string]uint64{"amd64": 8, "arm64": 1027}[runtime.GOARCH]
	for _, at := range i.moves {
		put(&b, dataPage+at, relative, binary.LittleEndian.Uint64(i.data.Bytes()[at:]))
	}
	put(&b, make([]byte, text-b.Len()))
	b.Write(code)
	b.WriteString(names)
	return i.whole(&b)
}

// unnamed returns a file without a name that holds this, open for reading and, if it can be,
// sealed: no other process can change it.
func unnamed(content []byte) (f *os.File, sealed bool, err error) {
	if content == nil {
		return nil, false, unix.ENOEXEC
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	fd, err := unix.MemfdCreate("agentctl", unix.MFD_CLOEXEC|unix.MFD_EXEC|unix.MFD_ALLOW_SEALING)
	sealed = err == nil
	if err != nil { // an old kernel, or a sandbox whose memory is bounded by a filter
		fd, err = unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o500)
	}
	if err != nil {
		return nil, false, err
	}
	w := os.NewFile(uintptr(fd), "agentctl")
	defer w.Close()
	if _, err := w.Write(content); err != nil {
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
