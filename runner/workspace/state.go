package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// stateBytes of the hash identify a state among those of one run.
const stateBytes = 12

// maxRefs bounds the references of a repository that are looked at.
const maxRefs = 10_000

// State returns an identity of the contents of the files: equal contents have
// equal states, whatever was written in between. It reads only files that were
// touched since the last time, and of a repository at the top what names its
// commits.
func (w *Workspace) State(ctx context.Context) (string, error) {
	if err := w.Ready(ctx); err != nil {
		return "", err
	}
	now, err := w.look(ctx)
	if err != nil {
		return "", fmt.Errorf("look at workspace %s: %w", w.dir, err)
	}
	h := sha256.New()
	for i := range now.Entries {
		e := &now.Entries[i]
		writeField(h, string(e.Path))
		writeField(h, string(e.Type))
		writeField(h, e.Hash)
		writeField(h, string(e.Target))
		_ = binary.Write(h, binary.LittleEndian, e.Mode) // a hash takes everything
	}
	if err := w.refs(h); err != nil {
		return "", fmt.Errorf("look at the repository of workspace %s: %w", w.dir, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:stateBytes]), nil
}

func writeField(w io.Writer, text string) {
	_ = binary.Write(w, binary.LittleEndian, uint32(len(text))) //nolint:gosec // paths and hashes are short
	_, _ = io.WriteString(w, text)
}

// refs adds which commits a repository names. Its files are not opened: a tool may
// have put anything in their places.
func (w *Workspace) refs(h io.Writer) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	count := 0
	look := func(name string, info fs.FileInfo) error {
		if count++; count > maxRefs {
			return fmt.Errorf("more than %d references", maxRefs)
		}
		writeField(h, name)
		if !info.IsDir() {
			_ = binary.Write(h, binary.LittleEndian, []int64{info.Size(), info.ModTime().UnixNano()})
		}
		return nil
	}
	for _, name := range []string{"HEAD", "MERGE_HEAD", "BISECT_LOG", "packed-refs", "refs", "rebase-merge", "rebase-apply"} {
		err := fs.WalkDir(root.FS(), gitName+"/"+name, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return skipGone(err)
			}
			info, err := d.Info()
			if err != nil {
				return skipGone(err)
			}
			return look(path, info)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// skipGone ignores a path that does not exist, is not a folder, or leads elsewhere: it is
// not a reference of the workspace.
func skipGone(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return nil
	}
	return err
}
