package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzInspect: any file that passes for a program is classified without a
// panic.
func FuzzInspect(f *testing.F) {
	f.Add([]byte(elfHead(f, 62)))
	f.Add([]byte("#!/bin/sh\n"))
	f.Add([]byte("#! \n"))
	f.Add([]byte("\x7fELF"))
	if self, err := os.Executable(); err == nil {
		if b, err := os.ReadFile(self); err == nil {
			f.Add(b[:4096])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := inspectBytes(bytes.NewReader(b))
		if err == nil && k.script != bytes.HasPrefix(b, []byte("#!")) {
			t.Errorf("%q: %+v", b, k)
		}
		if err == nil && k.script && (k.needs == "" || strings.ContainsAny(k.needs, " \n")) {
			t.Errorf("%q needs %q", b, k.needs)
		}
	})
}

// FuzzUnpack: a tar writes the files of a layout and nothing else, nowhere else.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"index.json", "../x", "/etc/passwd", "blobs/sha256/" + strings.Repeat("a", 64), "blobs/sha256/../../../x", "./oci-layout", "blobs/sha256"} {
		for _, kind := range []byte{tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeDir} {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			h := &tar.Header{Name: name, Typeflag: kind, Mode: 0o644}
			switch kind {
			case tar.TypeReg:
				h.Size = 2
			case tar.TypeSymlink, tar.TypeLink:
				h.Linkname = "/etc/passwd"
			}
			if w.WriteHeader(h) == nil {
				_, _ = w.Write([]byte("{}")[:h.Size])
			}
			_ = w.Close()
			f.Add(b.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		file := filepath.Join(dir, "in.tar")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = unpack(t.Context(), file, filepath.Join(dir, "out"))
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(filepath.Join(dir, "out"), p)
			if err != nil {
				return err
			}
			if p == file || d.IsDir() && (p == dir || rel == "." || rel == "blobs" || rel == "blobs/sha256") {
				return nil
			}
			if !d.Type().IsRegular() || !ofLayout(filepath.ToSlash(rel)) {
				t.Errorf("%s was written (%s)", rel, d.Type())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
