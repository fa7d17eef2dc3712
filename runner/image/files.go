package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// file is an entry of the layer.
type file struct {
	name       string // absolute, in the image
	path       string // of this host
	kind       fileKind
	link       string
	size       int64
	executable bool
}

type fileKind int

const (
	regular fileKind = iota
	folder
	symlink
)

// Bounds of a layer. Images hold programs, not data.
const (
	maxFiles = 200_000
	maxBytes = 4 << 30
)

// files lists the files of the image, in the order of the layer.
func (o *Options) files() ([]file, error) {
	if o.Program != "" {
		return oneFile(o.Program)
	}
	return folderFiles(o.Folder)
}

func oneFile(name string) ([]file, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a program", name)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f := file{name: path.Join("/", filepath.Base(name)), path: name, size: info.Size(), executable: true}
	return []file{f}, errors.Join(checkEntry(f.name), checkSize(f.size))
}

func folderFiles(root string) ([]file, error) {
	var (
		list  []file
		total int64
	)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || rel == "." {
			return err
		}
		f, err := entry(p, path.Join("/", filepath.ToSlash(rel)), d)
		if err != nil {
			return err
		}
		total += f.size
		if list = append(list, f); len(list) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return checkSize(total)
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", root, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("read folder %s: it is empty, or no folder", root)
	}
	return list, nil
}

func entry(p, name string, d fs.DirEntry) (file, error) {
	if err := checkEntry(name); err != nil {
		return file{}, err
	}
	info, err := d.Info()
	if err != nil {
		return file{}, err
	}
	f := file{name: name, path: p}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		f.size, f.executable = info.Size(), mode&0o111 != 0
	case mode.IsDir():
		f.kind = folder
	case mode&fs.ModeSymlink != 0:
		f.kind = symlink
		if f.link, err = os.Readlink(p); err != nil {
			return file{}, err
		}
	default:
		return file{}, fmt.Errorf("%s is neither a file, a folder nor a link", p)
	}
	return f, nil
}

// checkEntry refuses names with a special meaning in a layer: a name that
// begins with .wh. deletes a file of the base.
func checkEntry(name string) error {
	if strings.HasPrefix(path.Base(name), ".wh.") {
		return fmt.Errorf("%s: a name that begins with .wh. deletes files in an image", name)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("%q is no UTF-8 text", name)
	}
	return nil
}

func checkSize(n int64) error {
	if n > maxBytes {
		return fmt.Errorf("more than %d bytes", int64(maxBytes))
	}
	return nil
}
