// Package installed remembers the version that an installed program has said, for as long as its files stay as they are.
//
// Only what can be told apart from every other version is remembered: see Look. A memory is
// never a reason to refuse: what it does not hold is asked of the program.
package installed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Program is an installed program as it was at a moment. The zero value is one that nothing
// is known of.
type Program struct {
	path, digest string
	// changed is when the newest of its files was changed, by the clock of their disk.
	changed time.Time
}

// mostFiles bounds a folder of packages that is looked at.
const mostFiles = 50_000

// ErrUnknown says that the files of a program do not say which version of it they are.
var ErrUnknown = errors.New("its files do not tell its version")

// Look returns what tells a program from all others: of each of its files the path, the
// size, the inode, the owner, and the times of the last change of its content and of its
// inode (mtime and ctime). No program can set the ctime.
//
//	program                              its files
//	in a folder of packages              all in that folder: its script starts another file of it
//	a binary                             the binary
//	a script, or a link out of the       ErrUnknown: it starts what is not seen here
//	folder of packages
//
// path is absolute and without links, packages the folder of packages that it is part of, or "".
func Look(ctx context.Context, path, packages string) (Program, error) {
	p := Program{path: path}
	sum := sha256.New()
	if packages == "" {
		if err := binary(path); err != nil {
			return Program{}, err
		}
		info, err := os.Lstat(path)
		if err == nil {
			err = p.add(sum, path, info)
		}
		if err != nil {
			return Program{}, err
		}
	} else if err := p.addAll(ctx, sum, packages); err != nil {
		return Program{}, err
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// binary refuses a file that is not in the format of the system's programs.
func binary(path string) error {
	f, err := os.Open(path) //nolint:gosec // the program that is going to be started
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	begin := make([]byte, 4)
	if _, err := io.ReadFull(f, begin); err != nil || !bytes.Equal(begin, []byte("\x7fELF")) {
		return fmt.Errorf("%s: %w: it is a script", path, ErrUnknown)
	}
	return nil
}

// addAll adds the files of a folder.
func (p *Program) addAll(ctx context.Context, sum hash.Hash, packages string) error {
	files := 0
	return filepath.WalkDir(packages, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > mostFiles {
			return fmt.Errorf("%s: %w: more than %d files", packages, ErrUnknown, mostFiles)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := filepath.EvalSymlinks(file)
			if err == nil && !strings.HasPrefix(to, packages+"/") {
				return fmt.Errorf("%s: %w: it leads to %s", file, ErrUnknown, to)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return p.add(sum, file, info)
	})
}

// add adds a file.
func (p *Program) add(sum hash.Hash, file string, info fs.FileInfo) error {
	id, changed, ok := identify(info)
	if !ok {
		return fmt.Errorf("%s: %w", file, ErrUnknown)
	}
	if changed.After(p.changed) {
		p.changed = changed
	}
	_, err := fmt.Fprintf(sum, "%q %v %d %d %s\n", file, info.Mode(), info.Size(), info.ModTime().UnixNano(), id)
	return err
}
