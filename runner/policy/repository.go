package policy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// repository is a git repository, found as git finds it.
type repository struct {
	// tree is the folder of the files, index the list of those that git tracks.
	tree, index string
}

// Limits of what is read of a repository.
const (
	indexLimit = 64 << 20
	namesLimit = 400_000
)

// findRepository looks in an absolute folder and, unless it is named as the
// repository, in those above it.
func findRepository(dir string, named bool) (repository, bool) {
	for d := dir; ; d = path.Dir(d) {
		dot := path.Join(d, ".git")
		switch info, err := os.Lstat(dot); {
		case err == nil && !info.Mode().IsRegular():
			return repository{d, path.Join(dot, "index")}, true
		case err == nil:
			return repository{d, path.Join(linkedFolder(dot), "index")}, true
		case isBare(d):
			return repository{strings.TrimSuffix(d, "/.git"), path.Join(d, "index")}, true
		}
		if named || d == path.Dir(d) {
			return repository{}, false
		}
	}
}

// linkedFolder is where a file called .git points.
func linkedFolder(file string) string {
	f, err := openRegular(file)
	if err != nil {
		return file
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return file
	}
	to := strings.TrimSpace(strings.TrimPrefix(string(b), "gitdir:"))
	if !filepath.IsAbs(to) {
		to = path.Join(path.Dir(file), to)
	}
	return to
}

func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(path.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func readIndex(file string) ([]string, error) {
	f, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > indexLimit {
		return nil, fmt.Errorf("read %s: it is too large", file)
	}
	data, err := io.ReadAll(io.LimitReader(f, indexLimit))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return indexNames(data)
}

// indexNames lists the files in git's index, versions 2 to 4. An index that does not hold
// all names (a split or a sparse index) is an error.
func indexNames(data []byte) ([]string, error) {
	names, err := indexEntries(data, 20)
	if err != nil {
		names, err = indexEntries(data, 32) // SHA-256
	}
	return names, err
}

var errIndex = errors.New("an index that is not understood")

func indexEntries(data []byte, hash int) ([]string, error) {
	if len(data) < 12+hash || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || count > namesLimit {
		return nil, errIndex
	}
	const stat = 40
	end := len(data) - hash
	names := make([]string, 0, min(int(count), len(data)/(stat+hash+2)))
	at, previous := 12, ""
	for range count {
		start := at
		at += stat + hash
		if at+2 > end {
			return nil, errIndex
		}
		if mode := binary.BigEndian.Uint32(data[start+24:]); mode&0o170000 == 0o040000 {
			return nil, errIndex // a folder of a sparse index
		}
		flags := binary.BigEndian.Uint16(data[at:])
		if at += 2; flags&0x4000 != 0 {
			at += 2
		}
		keep := ""
		if version == 4 {
			cut, n := prefixCut(data[min(at, end):end])
			if n == 0 || cut > len(previous) {
				return nil, errIndex
			}
			at, keep = at+n, previous[:len(previous)-cut]
		}
		length := bytes.IndexByte(data[min(at, end):end], 0)
		if length < 0 {
			return nil, errIndex
		}
		previous = keep + string(data[at:at+length])
		names = append(names, previous)
		at += length + 1
		if version < 4 {
			at = start + (at-1-start+8)&^7
		}
	}
	return names, indexExtensions(data, at, end)
}

// prefixCut reads how much of the name before is dropped, as git writes offsets.
func prefixCut(b []byte) (value, n int) {
	for ; n < len(b) && n < 4; n++ {
		if n > 0 {
			value++
		}
		value = value<<7 | int(b[n]&0x7f)
		if b[n]&0x80 == 0 {
			return value, n + 1
		}
	}
	return 0, 0
}

// indexExtensions reads to the end, so that a misread earlier part is noticed.
func indexExtensions(data []byte, at, end int) error {
	for at+8 <= end {
		if kind := string(data[at : at+4]); kind == "link" || kind == "sdir" {
			return errIndex // the names are in another file
		}
		at += 8 + int(binary.BigEndian.Uint32(data[at+4:]))
	}
	if at != end {
		return errIndex
	}
	return nil
}
