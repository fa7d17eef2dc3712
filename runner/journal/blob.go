package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/runner/statedir"
)

// MaxBlob bounds one blob.
const MaxBlob = 64 << 20

const (
	blobFolder = "blobs"
	blobTemp   = ".blob-"
	hashPrefix = "sha256:"
)

// PutBlob stores b under its hash, sha256:<hex>, and returns it. The same content is
// stored once. The blob is durable when the next Sync returns. If a blob cannot be stored,
// on a full disk for example, the writer fails from then on, as for an event: a run must
// neither end nor continue with an incomplete journal.
func (w *Writer) PutBlob(b []byte) (id string, err error) {
	if len(b) > MaxBlob {
		return "", fmt.Errorf("run %q: store blob: %d bytes, at most %d", w.opts.Run, len(b), MaxBlob)
	}
	id = hashLine(b)
	w.mu.Lock()
	known, poisoned := w.blobs[id], w.err
	w.mu.Unlock()
	if known || poisoned != nil {
		return id, poisoned
	}
	path, err := blobPath(w.opts.Dir, id)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(path)
	err = w.storeBlob(path, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		return "", w.poison(fmt.Errorf("run %q: store blob: %w", w.opts.Run, err))
	}
	w.blobs[id] = true
	w.commit.touchFile(path)
	w.commit.touchFolder(folder)
	w.commit.touchFolder(w.opts.Dir)
	return id, w.err
}

// storeBlob trusts a file that is there already only if it holds b: one that a
// crash left empty is replaced.
func (w *Writer) storeBlob(path string, b []byte) error {
	if old, err := readCapped(path, MaxBlob); err == nil && bytes.Equal(old, b) {
		return nil
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, blobTemp+"*")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		f, err = os.CreateTemp(folder, blobTemp+"*")
	}
	if err != nil {
		return err
	}
	err = w.write(f, b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// takeOverBlobs has the next Sync make durable what an earlier process has
// stored, for events may speak of it, and removes what it left half-written.
func (w *Writer) takeOverBlobs() error {
	folder := filepath.Join(w.opts.Dir, blobFolder)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case !e.Type().IsRegular():
		case strings.HasPrefix(e.Name(), blobTemp):
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove a half-written blob: %w", err)
			}
		default:
			w.commit.touchFile(path)
		}
	}
	w.commit.touchFolder(folder)
	return nil
}

// GetBlob returns the content stored under id; see ReadBlob.
func (w *Writer) GetBlob(id string) ([]byte, error) { return ReadBlob(w.opts.Dir, id) }

// Stored reads the blobs in the folder of a run that no process writes any more.
type Stored string

// GetBlob reads a blob.
func (s Stored) GetBlob(id string) ([]byte, error) { return ReadBlob(string(s), id) }

// PutBlob refuses: nothing is written any more.
func (Stored) PutBlob([]byte) (string, error) {
	return "", errors.New("the journal of a finished run is not written to")
}

// ReadBlob returns the content stored under id, sha256:<hex>, in the run's
// folder dir. Content that does not have that hash is an error.
func ReadBlob(dir, id string) ([]byte, error) {
	path, err := blobPath(dir, id)
	if err != nil {
		return nil, err
	}
	b, err := readCapped(path, MaxBlob)
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", id, err)
	}
	if hashLine(b) != id {
		return nil, fmt.Errorf("read blob %s: %w", id, &CorruptError{File: filepath.Join(blobFolder, filepath.Base(path)), Problem: "its content has another hash"})
	}
	return b, nil
}

// blobPath takes the whole id and nothing else: no short form, no path.
func blobPath(dir, id string) (string, error) {
	name, ok := strings.CutPrefix(id, hashPrefix)
	if raw, err := hex.DecodeString(name); !ok || err != nil || len(raw) != 32 || name != strings.ToLower(name) {
		return "", fmt.Errorf("blob id %q: want sha256: and 64 hexadecimal digits", id)
	}
	return filepath.Join(dir, blobFolder, name), nil
}

// readCapped reads a regular file of at most limit bytes.
func readCapped(path string, limit int64) ([]byte, error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", filepath.Base(path), info.Size(), limit)
	}
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, limit)); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
