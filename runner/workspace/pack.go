package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const (
	// maxText bounds a file whose lines are compared.
	maxText = 1 << 20
	// maxPack bounds the old texts kept for the diff.
	maxPack = 256 << 20
)

// pack keeps the texts of the base, so that a diff does not depend on what
// becomes of the source meanwhile. It is one file without a name: writing five
// hundred of them would cost more than the copy, and nothing is left behind.
type pack struct {
	mu    sync.Mutex
	file  *os.File
	size  int64
	index map[string]span
}

type span struct{ offset, size int64 }

func newPack(dir string) (*pack, error) {
	folder := ""
	if dir != "" {
		folder = filepath.Dir(dir)
		if _, err := os.Stat(folder); err != nil {
			folder = ""
		}
	}
	f, err := os.CreateTemp(folder, ".base-*")
	if err != nil {
		return nil, fmt.Errorf("keep the base of the workspace: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("keep the base of the workspace: %w", err)
	}
	return &pack{file: f, index: map[string]span{}}, nil
}

// put keeps b unless it is no text or the pack is full.
func (p *pack) put(hash string, b []byte) error {
	if !isText(b) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.index[hash]; ok || p.size+int64(len(b)) > maxPack {
		return nil
	}
	if _, err := p.file.WriteAt(b, p.size); err != nil {
		return fmt.Errorf("keep the base of the workspace: %w", err)
	}
	p.index[hash] = span{p.size, int64(len(b))}
	p.size += int64(len(b))
	return nil
}

func (p *pack) get(hash string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.index[hash]
	if !ok {
		return nil, false
	}
	b := make([]byte, s.size)
	_, err := p.file.ReadAt(b, s.offset)
	return b, err == nil || len(b) == 0
}

func (p *pack) close() error { return p.file.Close() }

func isText(b []byte) bool { return len(b) <= maxText && bytes.IndexByte(b, 0) < 0 }
