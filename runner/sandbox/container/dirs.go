package container

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/runner/fstree"
)

// dirs are the folders of one runtime: pipes, sockets, mounts and generated
// files. They carry the owner in their name, by which a sweep finds them.
type dirs struct {
	root    string
	sockets string
}

// maxSocketFolder is the longest folder in which a plugin's socket still fits
// into the 107 bytes of its address, with the two folders and the name that
// plugins/host and go-plugin put below it.
const maxSocketFolder = 49

// folderPrefix begins the name of folders outside the state folder.
const folderPrefix = "ac-"

// folders creates the folders of this runtime on first use.
func (r *Runtime) folders() (*dirs, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirs != nil {
		return r.dirs, nil
	}
	if r.closed {
		return nil, errClosed
	}
	name := r.opts.Owner + "-" + strings.ToLower(rand.Text()[:4]) // a process may have several runtimes
	d := &dirs{root: filepath.Join(r.opts.StateDir, "containers", name)}
	d.sockets = filepath.Join(d.root, "s")
	if len(d.sockets) > maxSocketFolder {
		d.sockets = filepath.Join(os.TempDir(), folderPrefix+name)
	}
	if len(d.sockets) > maxSocketFolder {
		d.sockets = filepath.Join("/tmp", folderPrefix+name)
	}
	if err := os.MkdirAll(filepath.Dir(d.root), 0o700); err != nil {
		return nil, fmt.Errorf("make the folders of containers: %w", err)
	}
	for _, dir := range []string{d.root, d.fifos(), d.mounts(), d.etc(), d.sockets} {
		if err := os.Mkdir(dir, 0o700); err != nil { // never one that exists already
			return nil, fmt.Errorf("make the folders of containers: %w", err)
		}
	}
	boundSockets(d.sockets)
	r.dirs = d
	return d, nil
}

func (d *dirs) fifos() string  { return filepath.Join(d.root, "f") }
func (d *dirs) mounts() string { return filepath.Join(d.root, "m") }
func (d *dirs) etc() string    { return filepath.Join(d.root, "e") }

// owned refuses a folder in /tmp that another user has created under such a
// name.
func owned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("folder of sockets %s: it is not ours alone", dir)
	}
	return nil
}

// remove deletes the folders and what is still mounted in them.
func (d *dirs) remove() error {
	_ = detach(d.sockets) // also removes what programs left there, however deep
	entries, _ := os.ReadDir(d.mounts())
	for _, e := range entries {
		_ = detach(filepath.Join(d.mounts(), e.Name()))
	}
	if left, _ := os.ReadDir(d.mounts()); len(left) > 0 { // what is mounted must not be deleted with the folder
		for _, e := range left {
			if err := syscall.Rmdir(filepath.Join(d.mounts(), e.Name())); err != nil {
				return fmt.Errorf("unmount %s: %w", filepath.Join(d.mounts(), e.Name()), err)
			}
		}
	}
	return errors.Join(fstree.Remove(d.sockets), fstree.Remove(d.root))
}

// SocketDir is a folder whose path is short enough for unix sockets: the
// TempDir to give to plugins/host. It is removed by Close, or swept.
func (r *Runtime) SocketDir() (string, error) {
	d, err := r.folders()
	if err != nil {
		return "", err
	}
	return d.sockets, nil
}

// strays lists the folders of owners that are gone.
func (r *Runtime) strays() []*dirs {
	var out []*dirs
	roots, _ := os.ReadDir(filepath.Join(r.opts.StateDir, "containers"))
	for _, e := range roots {
		if gone(e.Name()) {
			root := filepath.Join(r.opts.StateDir, "containers", e.Name())
			out = append(out, &dirs{root: root, sockets: filepath.Join(root, "s")})
		}
	}
	for _, tmp := range []string{os.TempDir(), "/tmp"} {
		found, _ := filepath.Glob(filepath.Join(tmp, folderPrefix+"*"))
		for _, f := range found {
			if name := strings.TrimPrefix(filepath.Base(f), folderPrefix); gone(name) && owned(f) == nil {
				root := filepath.Join(r.opts.StateDir, "containers", name)
				out = append(out, &dirs{root: root, sockets: f})
			}
		}
	}
	return out
}
