package record

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// maxWords and maxWordBytes bound what is recorded of the arguments of a program.
	maxWords     = 64
	maxWordBytes = 1 << 10
	// maxInterpreters is how many scripts the kernel lets be the interpreter of one another.
	maxInterpreters = 4
)

func (l *look) execute(name string) (*attempt, error) {
	how := follow
	if l.number(l.call.flags)&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how = keep
	}
	if at, ok := l.judged(name); ok && how == follow {
		a := &attempt{op: sdk.RecordExecute, path: at}
		a.argv, a.cut = l.words(l.args[l.call.more], maxWords, maxWordBytes)
		return a, nil
	}
	t, err := l.whole(name, how)
	if err != nil || !t.there || t.kind() != unix.S_IFREG {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	a := &attempt{op: sdk.RecordExecute, path: t.label}
	if !t.nameless() {
		a.path = t.path()
		if unix.Access(a.path, unix.X_OK) != nil {
			return nil, nil //nolint:nilerr,nilnil // it fails
		}
		denied, works := l.denied(t)
		switch {
		case denied != "":
			a.path, a.refused = denied, true
			return a, nil
		case !works:
			return nil, nil //nolint:nilnil // it fails
		}
	}
	a.argv, a.cut = l.words(l.args[l.call.more], maxWords, maxWordBytes)
	return a, nil
}

// judged is the path of a program that has a rule, with all that the kernel executes with it:
// it need not be looked up step by step. What leads through /proc leads every process
// elsewhere.
func (l *look) judged(name string) (path string, ok bool) {
	var st unix.Stat_t
	if l.rights == nil || !strings.HasPrefix(name, "/") || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/") || !l.rooted() {
		return "", false
	}
	if unix.Stat(name, &st) != nil || st.Mode&0o111 == 0 {
		return "", false
	}
	return l.rights.mayRun(&st)
}

// denied is the program that the rules do not allow: the file itself, or an interpreter or
// loader that the kernel executes with it; "" if they allow all of them. Works reports
// whether these can be executed.
func (l *look) denied(t target) (program string, works bool) {
	if l.rights == nil {
		return "", true
	}
	if _, ok := l.rights.mayRun(&t.stat); ok {
		return "", true
	}
	for range maxInterpreters + 2 { // and the loader of the last
		if !l.rights.mayDo(&t, run) {
			return t.path(), true
		}
		f, err := os.OpenFile(t.path(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err != nil {
			return "", true // the kernel needs no right to read it, and we cannot know more
		}
		words, _ := Interpreter(f)
		_ = f.Close()
		if len(words) == 0 {
			return "", true
		}
		t, err = l.find(unix.AT_FDCWD, words[0], follow)
		if err != nil || !t.there || t.nameless() || t.kind() != unix.S_IFREG || unix.Access(t.path(), unix.X_OK) != nil {
			return "", false
		}
	}
	return "", true
}

// headSize is how much of a program is read: the kernel reads 256 bytes of a script's first
// line, and the table of an ELF file follows its header.
const headSize = 4096

// Interpreter is what the kernel executes with a program: the words of the first line of a
// script, or the loader of an ELF file; nothing for a file that is executed alone.
func Interpreter(f *os.File) (words []string, script bool) {
	var buf [headSize]byte
	n, err := f.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF { //nolint:errorlint // of ReadAt
		return nil, false
	}
	head := buf[:n]
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		for w := range bytes.FieldsSeq(line) {
			words = append(words, string(w))
		}
		return words, true
	}
	if p := loader(f, head); p != "" {
		return []string{p}, false
	}
	return nil, false
}

// loader is the loader that an ELF file names, "" for a static one. Package debug/elf would
// read the sections as well.
func loader(f *os.File, head []byte) string {
	const (
		header, entry    = 64, 56
		tableAt, entries = 32, 56
		kindInterpreter  = 3
	)
	if len(head) < header || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) {
		return ""
	}
	table, count := binary.LittleEndian.Uint64(head[tableAt:]), uint64(binary.LittleEndian.Uint16(head[entries:]))
	for i := range count {
		at := table + i*entry
		if table > uint64(len(head)) || at > uint64(len(head)-entry) {
			return ""
		}
		p := head[at:]
		if binary.LittleEndian.Uint32(p) != kindInterpreter {
			continue
		}
		offset, size := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[32:])
		if size == 0 || size > headSize {
			return ""
		}
		name := make([]byte, size)
		if _, err := f.ReadAt(name, int64(offset)); err != nil { //nolint:gosec // an error if it is too large
			return ""
		}
		return string(bytes.TrimRight(name, "\x00"))
	}
	return ""
}

// word is a number of 64 bits in memory.
func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
