package shell

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A shell that waits is bound when its command comes, not before: which programs and
// files the command may use is not known earlier. A process can only bind itself, and
// bash has no command for that. But bash can load one from a shared object (enable -f).
// This file writes that object: one function of two system calls, and the table by which
// bash finds it.
//
// The file has no name, so that no other process can open it by one. Where bash cannot
// load it, each bound call starts a shell of its own; see bind.

// bindCommand is the name of the command. It lays the rules of the descriptor rulesFD on
// the shell, or ends the shell.
const (
	bindCommand = "agentctl_bind"
	rulesFD     = 4
	objectFD    = 5
)

// bindCode are the instructions of the command by architecture:
//
//	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
//	if landlock_restrict_self(rulesFD, 0) != 0 { exit_group(126) }
//	return 0
var bindCode = map[string][]byte{
	"amd64": {
		0xb8, 157, 0, 0, 0, // mov eax, 157 (prctl)
		0xbf, 38, 0, 0, 0, // mov edi, 38
		0xbe, 1, 0, 0, 0, // mov esi, 1
		0x31, 0xd2, // xor edx, edx
		0x4d, 0x31, 0xd2, // xor r10, r10
		0x4d, 0x31, 0xc0, // xor r8, r8
		0x0f, 0x05, // syscall
		0xb8, 0xbe, 1, 0, 0, // mov eax, 446 (landlock_restrict_self)
		0xbf, rulesFD, 0, 0, 0, // mov edi, rulesFD
		0x31, 0xf6, // xor esi, esi
		0x0f, 0x05, // syscall
		0x48, 0x85, 0xc0, // test rax, rax
		0x74, 12, // jz over the next three
		0xb8, 231, 0, 0, 0, // mov eax, 231 (exit_group)
		0xbf, 126, 0, 0, 0, // mov edi, 126
		0x0f, 0x05, // syscall
		0x31, 0xc0, // xor eax, eax
		0xc3, // ret
	},
	"arm64": words32(
		0xd28004c0,            // mov x0, #38
		0xd2800021,            // mov x1, #1
		0xd2800002,            // mov x2, #0
		0xd2800003,            // mov x3, #0
		0xd2800004,            // mov x4, #0
		0xd28014e8,            // mov x8, #167 (prctl)
		0xd4000001,            // svc #0
		0xd2800000|rulesFD<<5, // mov x0, #rulesFD
		0xd2800001,            // mov x1, #0
		0xd28037c8,            // mov x8, #446 (landlock_restrict_self)
		0xd4000001,            // svc #0
		0xb4000080,            // cbz x0, over the next three
		0xd2800fc0,            // mov x0, #126
		0xd2800bc8,            // mov x8, #94 (exit_group)
		0xd4000001,            // svc #0
		0x52800000,            // mov w0, #0
		0xd65f03c0,            // ret
	),
}

func words32(words ...uint32) (code []byte) {
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code
}

// Numbers of the format ELF that package debug/elf has in other forms.
const (
	elfHeader, elfProgram, elfSymbol, elfRela = 64, 56, 24, 24
	// dataPage is where the writable half is in memory: behind the file's own place, and
	// on a page of its own whatever the size of a page is.
	dataOffset, dataPage = 0x1000, 0x11000
)

// bindObject is a shared object with the command for bash, nil for other architectures.
func bindObject() []byte {
	code := bindCode[runtime.GOARCH]
	if code == nil {
		return nil
	}
	machine, relative := uint16(62), uint64(8) // EM_X86_64, R_X86_64_RELATIVE
	if runtime.GOARCH == "arm64" {
		machine, relative = 183, 1027
	}
	const symbol = bindCommand + "_struct"
	names := "\x00" + symbol + "\x00" + bindCommand + "\x00"
	const programs = 4
	table := uint64(elfHeader + programs*elfProgram)
	hash := table + 2*elfSymbol
	moves := hash + 5*4 + 4 // aligned to 8
	text := moves + 3*elfRela
	names0 := text + uint64(len(code))
	size := names0 + uint64(len(names))
	const entry = 6 * 8 // struct builtin of bash: name, function, flags, long_doc, short_doc, handle
	dynamic := uint64(dataPage + entry)
	tags := []uint64{
		4, hash, // DT_HASH
		5, names0, // DT_STRTAB
		6, table, // DT_SYMTAB
		10, uint64(len(names)), // DT_STRSZ
		11, elfSymbol, // DT_SYMENT
		7, moves, // the relocations
		8, 3 * elfRela, // DT_RELASZ
		9, elfRela, // DT_RELAENT
		0, 0,
	}
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // of fixed size, into memory
		}
	}
	put([16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, uint16(3), machine, uint32(1), uint64(0), uint64(elfHeader), uint64(0), uint32(0),
		uint16(elfHeader), uint16(elfProgram), uint16(programs), uint16(0), uint16(0), uint16(0))
	segment := func(kind, flags uint32, offset, at, size, align uint64) {
		put(kind, flags, offset, at, at, size, size, align)
	}
	segment(1, 5, 0, 0, size, 0x10000)                                                                 // PT_LOAD, read and execute
	segment(1, 6, dataOffset, dataPage, entry+uint64(8*len(tags)), 0x10000)                            // PT_LOAD, read and write
	segment(2, 6, dataOffset+entry, dynamic, uint64(8*len(tags)), 8)                                   // PT_DYNAMIC
	segment(0x6474e551, 6, 0, 0, 0, 16)                                                                // PT_GNU_STACK, not executable
	put([elfSymbol]byte{}, uint32(1), byte(0x11), byte(0), uint16(1), uint64(dataPage), uint64(entry)) // a global object
	put([]uint32{1, 2, 1, 0, 0, 0})                                                                    // one chain with the one symbol
	name := names0 + uint64(len(symbol)+2)
	put(uint64(dataPage), relative, name, uint64(dataPage+8), relative, text, uint64(dataPage+32), relative, name)
	b.Write(code)
	b.WriteString(names)
	put(make([]byte, dataOffset-b.Len()))
	put([]uint64{0, 0, 1, 0, 0, 0}, tags) // flags: the command is enabled
	return b.Bytes()
}

// bindFile returns a file without a name that holds the object, nil where there is none.
func bindFile() *os.File {
	object := bindObject()
	if object == nil {
		return nil
	}
	fd, err := unix.MemfdCreate(bindCommand, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err != nil { // an old kernel, or a sandbox whose memory is bounded by a filter
		fd, err = unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o400)
	}
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), bindCommand)
	if _, err := f.Write(object); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
