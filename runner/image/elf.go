package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// kindOf is what the file of a program shows about it.
type kindOf struct {
	// arch in Go's words; "" for a file that runs anywhere.
	arch string
	// needs is the path of the program that must exist to start it, or "".
	needs string
	// script is set for a text file.
	script bool
}

// machines are the architectures for which Go and containers have the same
// name.
var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
	elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
}

// maxShebang bounds the first line of a script, as the kernel does.
const maxShebang = 256

// inspect reads what a program needs to run.
func inspect(file string) (kindOf, error) {
	f, err := os.Open(file) //nolint:gosec // the user names the program
	if err != nil {
		return kindOf{}, err
	}
	defer f.Close()
	return inspectBytes(f)
}

func inspectBytes(f io.ReaderAt) (kindOf, error) {
	head := make([]byte, maxShebang)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return kindOf{}, err
	}
	if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		first, _, _ := bytes.Cut(line, []byte("\n"))
		words := strings.Fields(string(first))
		if len(words) == 0 {
			return kindOf{}, errors.New("it is a script without an interpreter")
		}
		return kindOf{needs: words[0], script: true}, nil
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return kindOf{}, errors.New("it is no program for Linux: neither an ELF file nor a script")
	}
	arch, ok := machines[e.Machine]
	if !ok {
		return kindOf{}, fmt.Errorf("its architecture %s is unknown", e.Machine)
	}
	k := kindOf{arch: arch}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err != nil {
				return kindOf{}, fmt.Errorf("read its interpreter: %w", err)
			}
			k.needs = strings.TrimRight(string(b), "\x00")
		}
	}
	return k, nil
}

// architecture chooses the architecture of the image.
func (o *Options) architecture(program string) error {
	switch {
	case o.Architecture == "" && program == "":
		o.Architecture = runtime.GOARCH
	case o.Architecture == "":
		o.Architecture = program
	case program != "" && o.Architecture != program:
		return fmt.Errorf("the program is for %s, not for %s", program, o.Architecture)
	}
	return nil
}
