package record

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzInterpreter reads the head of a program, which may be anybody's.
func FuzzInterpreter(f *testing.F) {
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#!"))
	f.Add([]byte("#! \t\n"))
	f.Add([]byte("\x7fELF\x02\x01"))
	if program, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(program[:min(len(program), 2*headSize)])
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(dir, "program")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		words, script := Interpreter(file)
		size := 0
		for _, w := range words {
			size += len(w)
		}
		if size > headSize || !script && len(words) > 1 {
			t.Errorf("script %v, %d words of %d bytes", script, len(words), size)
		}
	})
}
