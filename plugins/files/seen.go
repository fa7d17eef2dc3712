package files

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// maxSeen bounds the memory of a long run; the files read longest ago are
// forgotten first and have to be read again before an edit.
const maxSeen = 1 << 16

// digest is the SHA-256 of a file.
type digest [sha256.Size]byte

func (d digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// seenKey names a file of a run by its real path, so that a file read through
// one link may be edited through another.
type seenKey struct{ run, path string }

// seen remembers which content of which file a run has read or written.
type seen struct {
	mu    sync.Mutex
	files map[seenKey]digest
	order []seenKey
}

func newSeen() *seen { return &seen{files: map[seenKey]digest{}} }

func (s *seen) put(run, path string, d digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := seenKey{run, path}
	if _, known := s.files[k]; !known {
		s.order = append(s.order, k)
	}
	s.files[k] = d
	if len(s.order) > maxSeen {
		delete(s.files, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *seen) get(run, path string) (digest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.files[seenKey{run, path}]
	return d, ok
}
