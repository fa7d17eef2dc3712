package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/workspace"
)

const (
	blobFolder = "blobs"
	hashPrefix = "sha256:"
	// blobTemp begins the names of files that become blobs.
	blobTemp = ".blob-"
	// blobRoom is how much of a blob is read at once.
	blobRoom = 1 << 20
)

// blobs are those of a run, each compared with its name.
type blobs struct {
	dir            string
	whole, changed map[string]bool
	bytes          int64
	temporary      int
	problems       []Problem
	err            error
}

// read reads every blob.
func (b *blobs) read(ctx context.Context) {
	b.whole, b.changed = map[string]bool{}, map[string]bool{}
	entries, err := os.ReadDir(filepath.Join(b.dir, blobFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		b.err = fmt.Errorf("list the blobs: %w", err)
		return
	}
	room := make([]byte, blobRoom)
	for _, e := range entries {
		if ctx.Err() != nil {
			b.err = context.Cause(ctx)
			return
		}
		name := e.Name()
		file := filepath.Join(blobFolder, name)
		if strings.HasPrefix(name, blobTemp) {
			b.temporary++
			continue
		}
		if raw, err := hex.DecodeString(name); err != nil || len(raw) != sha256.Size || name != strings.ToLower(name) {
			b.problems = append(b.problems, Problem{File: file, Problem: "no blob has such a name", Expected: "the hash of its content", Found: name})
			continue
		}
		sum, n, err := hashFile(filepath.Join(b.dir, file), room)
		id := hashPrefix + name
		switch {
		case errors.Is(err, statedir.ErrNotRegular):
			b.changed[id] = true
			b.problems = append(b.problems, Problem{File: file, Problem: "the blob is not a file", Expected: "a file", Found: e.Type().String()})
		case err != nil:
			b.err = fmt.Errorf("read blob %s: %w", id, err)
			return
		case sum != name:
			b.changed[id] = true
			b.problems = append(b.problems, Problem{File: file, Problem: "the content of the blob was changed", Expected: id, Found: hashPrefix + sum})
		default:
			b.whole[id] = true
			b.bytes += n
		}
	}
}

// hashFile is the SHA-256 of a file in hex, and its size.
func hashFile(path string, room []byte) (string, int64, error) {
	f, err := statedir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return hashOf(f, room)
}

func hashOf(r io.Reader, room []byte) (string, int64, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.LimitReader(r, maxHashed+1), room)
	if err == nil && n > maxHashed {
		err = fmt.Errorf("it has more than %d bytes", int64(maxHashed))
	}
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// maxHashed is more than any file has whose content is recorded.
const maxHashed = 64 << 30

func blobFile(id string) string {
	return filepath.Join(blobFolder, filepath.Base(strings.TrimPrefix(id, hashPrefix)))
}

// readChange reads a recorded change.
func readChange(dir, id string) (*workspace.Change, error) {
	return workspace.ReadChange(journal.Stored(dir), id)
}
