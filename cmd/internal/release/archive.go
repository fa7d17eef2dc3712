package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// papers are what is next to the programs of an archive.
var papers = []string{"LICENSE", "README.md", "CHANGELOG.md"}

// archive writes a tar.gz of a folder: in the order of the names, with the time of the commit
// and without an owner.
func archive(file string, src *source, folder string, built []binary) (err error) {
	from := map[string]string{}
	for _, name := range papers {
		from[name] = filepath.Join(src.Dir, name)
	}
	for i := range built {
		from[built[i].path()] = built[i].File
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	zip, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zip)
	for _, name := range withFolders(from) {
		h := &tar.Header{Name: path.Join(folder, name), Mode: 0o644, ModTime: src.Time, Format: tar.FormatUSTAR}
		if strings.HasSuffix(name, "/") || name == "" {
			h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", 0o755
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(papers, name) {
			h.Mode = 0o755
		}
		if err := addFile(w, h, from[name]); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return errors.Join(w.Close(), zip.Close())
}

// withFolders are the names and the folders that they need, in order.
func withFolders(files map[string]string) []string {
	names := map[string]bool{"": true}
	for name := range files {
		names[name] = true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			names[dir+"/"] = true
		}
	}
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func addFile(w *tar.Writer, h *tar.Header, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, in, h.Size)
	return err
}

// writeChecksums writes the digest of every file below a folder, as sha256sum reads them.
func writeChecksums(dir string) error {
	files, err := below(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range files {
		sum, err := digest(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, checksumsName), []byte(text.String()), 0o644)
}

// below are the files below a folder, in order.
func below(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		files = append(files, filepath.ToSlash(name))
		return err
	})
	slices.Sort(files)
	return files, err
}
