package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/tool"
)

// cache keeps what servers described, so that a run does not have to start one to know
// what it may offer to the model. It decides nothing: before the first call the server is
// asked, and a function that it describes otherwise is not called.
type cache struct {
	// dir is "" where nothing is kept.
	dir string

	mu    sync.Mutex
	known map[string]*described
}

func cacheDir(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "cache", "mcp")
}

// file is where the description of a server is kept. Its name depends on how the server is
// reached, and on the files that its command names.
func (c *cache) file(d *tool.Definition) string {
	h := sha256.New()
	names := make([]string, 0, len(d.Spec.Env)+len(d.Secrets))
	for _, v := range d.Spec.Env {
		names = append(names, v.Name)
	}
	for _, s := range d.Secrets {
		names = append(names, s.Name)
	}
	source, err := json.Marshal(d.Spec.Source)
	if err != nil {
		return ""
	}
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", d.Program(), source, strings.Join(names, "\x00"))
	for i, word := range d.Command {
		if i == 0 {
			if path, err := exec.LookPath(word); err == nil {
				word = path
			}
		}
		if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() {
			fmt.Fprintf(h, "%s %d %d\x00", word, info.Size(), info.ModTime().UnixNano())
		}
	}
	return filepath.Join(c.dir, hex.EncodeToString(h.Sum(nil))+".json")
}

// maxKept bounds a file of the cache.
const maxKept = 64 << 20

// read returns what is kept of a server.
func (c *cache) read(d *tool.Definition) (*described, bool) {
	if c.dir == "" {
		return nil, false
	}
	name := c.file(d)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxKept {
		return nil, false
	}
	b, err := os.ReadFile(name)
	found := &described{}
	if err != nil || json.Unmarshal(b, found) != nil || len(found.Functions) == 0 {
		return nil, false
	}
	c.hold(d, found)
	return found, true
}

func (c *cache) hold(d *tool.Definition, found *described) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]*described{}
	}
	c.known[d.Program()] = found
}

// write keeps what a server describes. What cannot be kept is asked for again.
func (c *cache) write(d *tool.Definition, found *described) {
	c.hold(d, found)
	if c.dir == "" {
		return
	}
	b, err := json.Marshal(found)
	if err != nil || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.dir, ".new-*")
	if err != nil {
		return
	}
	_, err = f.Write(b)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), c.file(d))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// renew keeps what a server describes if that differs from what is kept, and returns it
// then.
func (c *cache) renew(d *tool.Definition, found *described) *described {
	c.mu.Lock()
	was := c.known[d.Program()]
	c.mu.Unlock()
	if was != nil && was.Digest == found.Digest {
		return nil
	}
	found = compilable(found)
	c.write(d, found)
	return found
}
