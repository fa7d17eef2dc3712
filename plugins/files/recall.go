package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// recall records what an earlier process of the run has read or written. A file that is
// gone, or whose path or hash is incomplete, has to be read again, to be safe.
func (s *set) recall(past sdk.Past) {
	var data fileData
	if json.Unmarshal(past.Metadata, &data) == nil {
		s.recallFile(past, data)
	}
}

// recallPatch is recall for the files of a patch.
func (s *set) recallPatch(past sdk.Past) {
	var data patchData
	if json.Unmarshal(past.Metadata, &data) != nil {
		return
	}
	for _, f := range data.Files {
		s.recallFile(past, f.fileData)
	}
}

func (s *set) recallFile(past sdk.Past, data fileData) {
	sum, ok := parseDigest(data.Hash)
	if !ok {
		return
	}
	if filepath.IsAbs(data.Path) { // outside the workspace, and named by its real path
		s.seen.put(past.Run, filepath.Clean(data.Path), sum)
		return
	}
	w, err := openWorkspace(past.Workspace)
	if err != nil {
		return
	}
	defer w.close()
	rel, err := w.rel(data.Path)
	if err != nil {
		return
	}
	f, _, err := w.open(rel)
	if err != nil {
		return
	}
	defer f.Close()
	if p, err := realFile(f); err == nil {
		s.seen.put(past.Run, p, sum)
	}
}

func parseDigest(text string) (d digest, ok bool) {
	text, ok = strings.CutPrefix(text, "sha256:")
	if !ok || len(text) != 2*sha256.Size {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}
