package container

import (
	"fmt"
	"os"
	"path/filepath"
)

// etcNames are the files of /etc that every container gets from the runner:
// programs crash without them, and an image's own would name other users and
// hosts.
var etcNames = []string{"passwd", "group", "hosts", "resolv.conf", "nsswitch.conf"}

// etcFiles writes them for one user and returns their folder.
func (d *dirs) etcFiles(who runAs) (string, error) {
	dir := filepath.Join(d.etc(), fmt.Sprintf("%d-%d", who.uid, who.gid))
	if _, err := os.Stat(filepath.Join(dir, etcNames[len(etcNames)-1])); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("write /etc of a container: %w", err)
	}
	text := map[string]string{
		"passwd":        fmt.Sprintf("root:x:0:0:root:/:/bin/false\ntool:x:%d:%d:tool:%s:/bin/sh\n", who.uid, who.gid, tmpDir),
		"group":         fmt.Sprintf("root:x:0:\ntool:x:%d:\n", who.gid),
		"hosts":         "127.0.0.1 localhost agentctl\n::1 localhost\n",
		"resolv.conf":   "# There is no resolver: names are resolved by the proxy, or not at all.\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
	for _, name := range etcNames { // in this order: the last file exists only when all others do
		if err := replace(filepath.Join(dir, name), text[name]); err != nil {
			return "", fmt.Errorf("write /etc of a container: %w", err)
		}
	}
	return dir, nil
}

// replace writes a file in one step: another launch may read it.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	for _, next := range []func() error{func() error { return f.Chmod(0o644) }, f.Close, func() error { return os.Rename(f.Name(), path) }} {
		if nextErr := next(); err == nil {
			err = nextErr
		}
	}
	return err
}
