package workspace

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Path is a path inside a workspace with slashes, or the target of a link. In JSON a path
// that is not UTF-8 is {"base64": ...}, so that it can be decoded exactly.
type Path string

// MarshalJSON writes a string, or an object where a string would lose bytes.
func (p Path) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(rawPath{[]byte(p)})
}

// UnmarshalJSON reads both forms.
func (p *Path) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw rawPath
		err := json.Unmarshal(b, &raw)
		*p = Path(raw.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(p))
}

type rawPath struct {
	Base64 []byte `json:"base64"`
}

// Type is the type of what is at a path.
type Type string

// The types of entries.
const (
	TypeFile Type = "file"
	TypeDir  Type = "dir"
	TypeLink Type = "link"
)

// Entry is one path of a snapshot.
type Entry struct {
	Path Path `json:"path"`
	Type Type `json:"type"`
	// Mode holds the permission bits; 0 for links.
	Mode uint32 `json:"mode,omitempty"`
	// Size and Hash (sha256:<hex>) of a file.
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"`
	// Target of a link.
	Target Path `json:"target,omitempty"`

	sig signature
}

// signature determines without reading whether a file is still the one that was hashed.
// The change time is part of it: unlike the modification time, no program can set it back.
type signature struct {
	id           inode
	size         int64
	mtime, ctime unix.Timespec
	// racy marks a file that was looked at in the same tick in which it may
	// have been changed again: it must be read.
	racy bool
}

func signatureOf(st *unix.Stat_t) signature {
	return signature{id: inodeOf(st), size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
}

// proves reports whether an equal signature means an equal file.
func (s signature) proves(now signature) bool {
	return !s.racy && s == now
}

// late reports whether a file may have been changed again in the tick in which it was looked at.
// A file system without fractions of a second cannot distinguish two changes.
func (s signature) late(tick unix.Timespec) bool {
	return s.ctime.Nsec == 0 || !older(s.ctime, tick)
}

// Snapshot is the state of a tree, sorted by path, without the .git folders.
type Snapshot struct {
	Entries []Entry `json:"entries"`
	// Files and Bytes are totals.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`

	// Hidden are folders that could not be listed.
	Hidden []Path `json:"hidden,omitempty"`

	// order are the places in Entries of what is in a folder, as the system has listed it.
	// It lists a folder that has not changed in the same order the next time. It is empty
	// for a snapshot that was not compared with one before it.
	order map[Path][]int32
}

// hides reports whether the content at p is unknown.
func (s *Snapshot) hides(p Path) bool {
	for _, dir := range s.Hidden {
		if dir == "" || p == dir || strings.HasPrefix(string(p), string(dir)+"/") {
			return true
		}
	}
	return false
}

func newSnapshot(entries []Entry, tick unix.Timespec) *Snapshot {
	slices.SortFunc(entries, byPath)
	return sorted(entries, tick)
}

func byPath(a, b Entry) int { return strings.Compare(string(a.Path), string(b.Path)) }

// sorted is newSnapshot of entries in order of their paths.
func sorted(entries []Entry, tick unix.Timespec) *Snapshot {
	s := &Snapshot{Entries: entries}
	for i := range entries {
		e := &entries[i]
		s.add(e)
		if e.sig.late(tick) {
			e.sig.racy = true
		}
	}
	return s
}

// add counts an entry.
func (s *Snapshot) add(e *Entry) {
	if e.Type != TypeDir {
		s.Files++
		s.Bytes += e.Size
	}
}

// find returns the entry of a path; nil if there is none.
func (s *Snapshot) find(p Path) *Entry {
	if i := s.place(p); i != unplaced {
		return &s.Entries[i]
	}
	return nil
}

func (s *Snapshot) index() map[Path]*Entry {
	if s == nil {
		return nil
	}
	m := make(map[Path]*Entry, len(s.Entries))
	for i := range s.Entries {
		m[s.Entries[i].Path] = &s.Entries[i]
	}
	return m
}

// Record stores the snapshot and returns its blob.
func (s *Snapshot) Record(blobs Blobs) (id string, err error) {
	b, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("record snapshot: %w", err)
	}
	if id, err = putLarge(blobs, b); err != nil {
		return "", fmt.Errorf("record snapshot: %w", err)
	}
	return id, nil
}

// ReadSnapshot reads a recorded snapshot. It proves nothing about the files by
// itself: each has to be read once to be known.
func ReadSnapshot(blobs Blobs, id string) (*Snapshot, error) {
	b, err := getLarge(blobs, id)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	s := &Snapshot{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", id, err)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if !isLocal(e.Path) || e.Type != TypeFile && e.Type != TypeDir && e.Type != TypeLink {
			return nil, fmt.Errorf("read snapshot %s: %q is no path of type %q in a workspace", id, string(e.Path), e.Type)
		}
	}
	return s, nil
}

// isLocal reports whether a path stays in the folder, lexically.
func isLocal(p Path) bool {
	s := string(p)
	return s != "." && path.Clean(s) == s && filepath.IsLocal(s) && strings.IndexByte(s, 0) < 0
}
