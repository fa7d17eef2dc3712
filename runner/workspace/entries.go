package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// RecordedEntries are the paths that the blob of one recorded state lists: all of them for
// that before a run, what was new or changed for that after a step.
func RecordedEntries(blobs Blobs, id string) ([]Entry, error) {
	b, err := getLarge(blobs, id)
	if err != nil {
		return nil, fmt.Errorf("read the state of the files: %w", err)
	}
	if !bytes.HasPrefix(b, []byte(stepPrefix)) {
		s, err := ReadSnapshot(blobs, id)
		if err != nil {
			return nil, err
		}
		return s.Entries, nil
	}
	var s step
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read the state of the files %s: %w", id, err)
	}
	return s.Entries, nil
}

// Without is the state without the files for which out is true.
func (s *Snapshot) Without(out func(path string) bool) *Snapshot {
	var kept []Entry
	less := &Snapshot{Hidden: s.Hidden}
	for _, e := range s.Entries {
		if e.Type != TypeDir && out(string(e.Path)) {
			continue
		}
		if e.Type != TypeDir {
			less.Files++
			less.Bytes += e.Size
		}
		kept = append(kept, e)
	}
	less.Entries = kept
	return less
}
