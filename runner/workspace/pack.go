package workspace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// pack stores the texts of the base, so that a diff does not depend on later changes of
// the source, nor on the process that makes it. It is one file: writing five hundred would
// cost more than the copy. It is not flushed to the disk: after a crash of the machine its
// texts are compared with the hashes, and a text that is lost costs lines of a diff, never
// a change.
//
//	the texts, one after the other
//	hash and length of each, in the same order   packRecord bytes each
//	packMagic, number of texts, their bytes      packFooter bytes
//
// A file without the last two is that of a preparation that did not end.
type pack struct {
	path string

	mu    sync.Mutex
	file  *os.File
	size  int64
	index map[string]span
	order []string
}

type span struct{ offset, size int64 }

const (
	packMagic  = "agentctl base 1\n"
	packRecord = 32 + 4
	packFooter = len(packMagic) + 4 + 8
)

// newPack makes an empty pack, and replaces an existing one. Without a path it has no
// name, and ends with this process.
func newPack(path string) (*pack, error) {
	p := &pack{path: path, index: map[string]span{}}
	var err error
	if path == "" {
		if p.file, err = os.CreateTemp("", ".base-*"); err == nil {
			err = os.Remove(p.file.Name())
		}
	} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		if err = p.remove(); err == nil {
			p.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep the base of the workspace: %w", err), p.close())
	}
	return p, nil
}

// openPack reads what a process before this one has kept.
func openPack(path string) (*pack, error) {
	p := &pack{path: path, index: map[string]span{}}
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err == nil {
		p.file, err = os.Open(path)
	}
	if err == nil {
		err = p.load(info.Size())
	}
	if err != nil {
		clear(p.index)
		return p, fmt.Errorf("read the kept base of the workspace: %w", err)
	}
	return p, nil
}

var errPack = errors.New("it is damaged, or was never completed")

func (p *pack) load(size int64) error {
	footer := make([]byte, packFooter)
	if _, err := p.file.ReadAt(footer, size-int64(packFooter)); err != nil || string(footer[:len(packMagic)]) != packMagic {
		return errPack
	}
	n := int64(binary.BigEndian.Uint32(footer[len(packMagic):]))
	texts := int64(binary.BigEndian.Uint64(footer[len(packMagic)+4:])) //nolint:gosec // compared next
	if n > MaxFiles || texts < 0 || texts > maxPack || texts+n*packRecord+int64(packFooter) != size {
		return errPack
	}
	records := make([]byte, n*packRecord)
	if _, err := p.file.ReadAt(records, texts); err != nil && (n > 0 || !errors.Is(err, io.EOF)) {
		return err
	}
	for ; len(records) > 0; records = records[packRecord:] {
		s := span{p.size, int64(binary.BigEndian.Uint32(records[32:]))}
		p.index["sha256:"+hex.EncodeToString(records[:32])] = s
		p.size += s.size
	}
	if p.size != texts {
		return errPack
	}
	return nil
}

// put stores b unless it is not text or the pack is full.
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
	p.order = append(p.order, hash)
	p.size += int64(len(b))
	return nil
}

// seal ends the pack: from now on another process can read it.
func (p *pack) seal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := make([]byte, 0, len(p.order)*packRecord+packFooter)
	for _, hash := range p.order {
		var err error
		if b, err = hex.AppendDecode(b, []byte(hash[len("sha256:"):])); err != nil {
			return fmt.Errorf("keep the base of the workspace: %w", err)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(p.index[hash].size)) //nolint:gosec // at most maxText
	}
	b = append(b, packMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.order))) //nolint:gosec // at most MaxFiles
	b = binary.BigEndian.AppendUint64(b, uint64(p.size))       //nolint:gosec // at most maxPack
	if _, err := p.file.WriteAt(b, p.size); err != nil {
		return fmt.Errorf("keep the base of the workspace: %w", err)
	}
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
	if _, err := p.file.ReadAt(b, s.offset); err != nil && len(b) > 0 {
		return nil, false
	}
	return b, hashOf(b) == hash
}

func (p *pack) close() error {
	if p.file == nil {
		return nil
	}
	if err := p.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("keep the base of the workspace: %w", err)
	}
	return nil
}

// remove is called when no further diff will be made.
func (p *pack) remove() error {
	if p.path == "" {
		return nil
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the kept base of the workspace: %w", err)
	}
	return nil
}

// Forget removes what a workspace in dir has stored for a running run: the run has ended.
func Forget(dir string) error { return (&pack{path: (&Spec{Dir: dir}).packPath()}).remove() }

func isText(b []byte) bool { return len(b) <= maxText && bytes.IndexByte(b, 0) < 0 }
