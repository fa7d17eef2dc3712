package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/workspace"
)

// stored are blobs in memory.
type stored map[string][]byte

func (s stored) PutBlob(b []byte) (string, error) {
	sum := sha256.Sum256(b)
	id := "sha256:" + hex.EncodeToString(sum[:])
	s[id] = b
	return id, nil
}

func (s stored) GetBlob(id string) ([]byte, error) {
	if b, ok := s[id]; ok {
		return b, nil
	}
	return nil, errors.New("no blob " + id)
}

func TestContentsThatExpectationsReadAreBounded(t *testing.T) {
	blobs := stored{}
	add := func(path, content string) workspace.FileChange {
		id, err := blobs.PutBlob([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return workspace.FileChange{Path: workspace.Path(path), Change: workspace.Added, New: &workspace.Version{Type: workspace.TypeFile, Size: int64(len(content)), Blob: id}}
	}
	files := []workspace.FileChange{
		add("text", "a\n"), add("binary", "\xff\xfe"), add("limit", strings.Repeat("x", maxContent)), add("large", strings.Repeat("x", maxContent+1)),
		{Path: "gone", Change: workspace.Deleted, Old: &workspace.Version{Type: workspace.TypeLink}},
		{Path: "link", Change: workspace.Modified, New: &workspace.Version{Type: workspace.TypeLink, Target: "/etc"}},
		{Path: "unrecorded", Change: workspace.Added, New: &workspace.Version{Type: workspace.TypeFile, Size: 5}, NotApplicable: "too large"},
	}
	for range maxContents / maxContent {
		files = append(files, add("more"+strings.Repeat("x", len(files)), strings.Repeat("y", maxContent)))
	}
	raw, err := json.Marshal(workspace.Change{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	id, err := blobs.PutBlob(raw)
	if err != nil {
		t.Fatal(err)
	}
	v := &view.Run{Changes: event.WorkspacePatch{Change: id}}
	got, err := Files(v, blobs)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"text": 2, "binary": -1, "limit": maxContent, "large": -1, "gone": -1, "link": -1, "unrecorded": -1} {
		n := -1
		if c, ok := got[path].(map[string]any)["content"].(string); ok {
			n = len(c)
		}
		if n != want {
			t.Errorf("%s has %d bytes of content, want %d", path, n, want)
		}
	}
	of := func(path string) map[string]any { return got[path].(map[string]any) }
	if of("gone")["type"] != "link" || of("link")["target"] != "/etc" || of("large")["size"] != int64(maxContent+1) {
		t.Errorf("got %+v", got)
	}
	total := 0
	for _, f := range got {
		if c, ok := f.(map[string]any)["content"].(string); ok {
			total += len(c)
		}
	}
	if total > maxContents {
		t.Errorf("%d bytes of content, at most %d", total, maxContents)
	}
	delete(blobs, files[0].New.Blob)
	if _, err := Files(v, blobs); err == nil || !strings.Contains(err.Error(), "text: no blob") {
		t.Errorf("a content that is missing: %v", err)
	}
}
