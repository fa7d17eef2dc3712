package shell

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
)

// headSize is how much of a program is read: the kernel reads 256 bytes of a script's first
// line, and the table of an ELF file follows its header.
const headSize = 4096

// interpreters are the programs that the kernel starts with a program: the one that the
// first line of a script names, and the one that env would find for it, or the loader of
// an ELF file.
func interpreters(f *os.File) []string {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF { //nolint:errorlint // of ReadAt
		return nil
	}
	head = head[:n]
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		words := bytes.Fields(line)
		if len(words) == 0 {
			return nil
		}
		all := []string{string(words[0])}
		if len(words) > 1 && bytes.HasSuffix(words[0], []byte("/env")) {
			if p, err := exec.LookPath(string(words[len(words)-1])); err == nil {
				all = append(all, p)
			}
		}
		return all
	}
	if p := loader(f, head); p != "" {
		return []string{p}
	}
	return nil
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
		if at > uint64(len(head)-entry) {
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
