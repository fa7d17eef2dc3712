package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"syscall"

	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// contents finds the contents of the files of two runs: among the blobs of both, else in
// their folders and sources, where a file still has the hash that was recorded.
type contents struct {
	runs  []string
	roots []*os.Root
	paths map[string][]workspace.Path
}

func newContents(a, b *side, states ...*workspace.Snapshot) *contents {
	c := &contents{paths: map[string][]workspace.Path{}}
	seen := map[string]bool{}
	for _, s := range []*side{a, b} {
		c.runs = append(c.runs, s.found.Dir)
		w := s.at.Run.Started.Workspace
		for _, dir := range []string{w.Dir, s.files, w.Source} {
			if dir == "" || seen[dir] {
				continue
			}
			seen[dir] = true
			if root, err := os.OpenRoot(dir); err == nil { // one that is gone has nothing
				c.roots = append(c.roots, root)
			}
		}
	}
	for _, s := range states {
		for i := range s.Entries {
			if e := &s.Entries[i]; e.Hash != "" {
				c.paths[e.Hash] = append(c.paths[e.Hash], e.Path)
			}
		}
	}
	return c
}

func (c *contents) close() {
	for _, r := range c.roots {
		_ = r.Close() // nothing was written
	}
}

// GetBlob implements workspace.Blobs.
func (c *contents) GetBlob(id string) ([]byte, error) {
	for _, dir := range c.runs {
		if b, err := journal.ReadBlob(dir, id); err == nil {
			return b, nil
		}
	}
	for _, root := range c.roots {
		for i, p := range c.paths[id] {
			if i == 2 { // a path of each state
				break
			}
			if b, ok := unchanged(root, p, id); ok {
				return b, nil
			}
		}
	}
	return nil, fmt.Errorf("the content %s was not kept", id)
}

// unchanged reads a file that has a hash. No link leads out of the folder.
func unchanged(root *os.Root, p workspace.Path, hash string) ([]byte, bool) {
	info, err := root.Lstat(string(p))
	if err != nil || !info.Mode().IsRegular() || info.Size() > workspace.MaxKept {
		return nil, false
	}
	f, err := root.OpenFile(string(p), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, workspace.MaxKept+1))
	sum := sha256.Sum256(b)
	return b, err == nil && "sha256:"+hex.EncodeToString(sum[:]) == hash
}

// PutBlob implements workspace.Blobs.
func (*contents) PutBlob([]byte) (string, error) {
	return "", fmt.Errorf("runs that are compared are not written to")
}

// has reports whether the content of a version can be compared.
func (c *contents) has(v *workspace.Version) bool {
	if v == nil || v.Type != workspace.TypeFile || v.Size == 0 {
		return true
	}
	_, err := c.GetBlob(v.Hash)
	return err == nil
}
