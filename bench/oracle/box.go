//go:build linux && amd64

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// boxArgument starts the program as the first process of a box.
	boxArgument = "in-a-box"
	// workspace and home are folders of the box.
	workspace = "/project"
	home      = "/root"
)

// order is a script that a box is to run.
type order struct {
	// Before makes files; it is not recorded. Optional.
	Before string
	Script string
}

// serveBox runs as process 1 of new namespaces: it builds the box, and then runs each
// script that it is sent. A process of a script that is left over ends with the script.
func serveBox() error {
	if err := enter(); err != nil {
		return fmt.Errorf("build the box: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	type observed struct {
		Trace
		changed bool
		err     error
	}
	begin, end := make(chan string), make(chan observed)
	defer close(begin)
	go func() {
		runtime.LockOSThread() // one thread starts and traces all
		err := filterCalls()
		for script := range begin {
			r := observed{err: err}
			if err == nil {
				r.Trace, r.changed, r.err = observe(script, null)
			}
			end <- r
		}
	}()
	orders, traces := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	r := observed{changed: true}
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return nil // the parent has closed the pipe
		}
		if r.changed {
			if err := refill(); err != nil {
				return err
			}
		}
		var links map[string]string
		if o.Before != "" {
			begin <- o.Before
			if r = <-end; r.err != nil {
				return r.err
			}
			links = workspaceLinks()
		}
		begin <- o.Script
		if r = <-end; r.err != nil {
			return r.err
		}
		r.Links, r.changed = links, r.changed || o.Before != ""
		if err := traces.Encode(r.Trace); err != nil {
			return err
		}
	}
}

// workspaceLinks returns the links in the workspace itself.
func workspaceLinks() map[string]string {
	links := map[string]string{}
	names, _ := filepath.Glob(workspace + "/*") // the pattern is valid
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil {
			links[name] = target
		}
	}
	return links
}

// enter makes a root of the host's programs, read-only, with folders of its own for what
// scripts may change.
func enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	root := "/tmp"
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755,size=256m"); err != nil {
		return err
	}
	for _, dir := range []string{"usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if err := show(dir, root); err != nil {
			return err
		}
	}
	for _, dir := range []string{"proc", "dev", "tmp", "project", "root", "old", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := device(name, root); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(root, filepath.Join(root, "old")); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return err
	}
	for _, dir := range scratch {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size=64m"); err != nil {
			return err
		}
	}
	return nil
}

// show makes a folder of the host visible, read-only. A link stays a link.
func show(dir, root string) error {
	from, to := "/"+dir, filepath.Join(root, dir)
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID, "")
}

func device(name, root string) error {
	to := filepath.Join(root, "dev", name)
	if err := os.WriteFile(to, nil, 0o600); err != nil {
		return err
	}
	return unix.Mount("/dev/"+name, to, "", unix.MS_BIND, "")
}

// hostileRepository is one of the fixture whose settings name a program.
const hostileRepository = "/project/bare"

// fixture is what scripts find: names of files, whose text is their name or is listed, of
// folders, of programs, and links.
var fixture = struct {
	folders []string
	files   []string
	texts   map[string]string
	// programs leave a file that shows that they ran.
	programs []string
	links    map[string]string
}{
	[]string{
		"/project/src", "/project/src/deep", "/project/empty", "/project/bin", "/tmp/other", "/root/.ssh",
		"/project/.git", "/project/.git/objects", "/project/.git/refs", "/tmp/other/.git", "/tmp/other/.git/objects", "/tmp/other/.git/refs",
		"/project/bare", "/project/bare/objects", "/project/bare/refs", "/project/src/git",
	},
	[]string{
		"/project/a.txt", "/project/b.txt", "/project/src/main.go", "/project/src/deep/x.txt", "/project/list", "/tmp/other/o.txt", "/root/.ssh/id_rsa", "/root/.profile",
	},
	map[string]string{
		"/project/src/x.c":        "int a;\n",
		"/project/src/m.jq":       "def m: 1;\n",
		"/project/p.diff":         "--- a/src/main.go\n+++ b/src/main.go\n@@ -1 +1 @@\n-main.go\n+other\n",
		"/project/.gitconfig":     "[user]\n\tname = a\n",
		"/project/src/git/config": "[user]\n\tname = a\n",
		"/project/.git/HEAD":      "ref: refs/heads/main\n",
		"/tmp/other/.git/HEAD":    "ref: refs/heads/main\n",
		"/project/bare/HEAD":      "ref: refs/heads/main\n",
		// A program that a clone or an agent has written into a configuration.
		"/project/bare/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = touch /project/started\n",
	},
	[]string{"/project/bin/ls", "/project/bin/cat", "/project/bin/as", "/project/bin/cc1"},
	map[string]string{"/project/link": "src", "/project/out": "/tmp/other"},
}

// scratch are the folders that scripts may change, besides new names in the root.
var scratch = []string{workspace, home, "/tmp", "/var/tmp"}

// empty removes what the last script left.
func empty() error {
	for _, dir := range scratch {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // every program may read it
			return err
		}
		if err := clearFolder(dir); err != nil {
			return err
		}
	}
	return clearFolder("/", "usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "proc", "dev", "tmp", "project", "root", "var")
}

// clearFolder removes all of a folder but some names.
func clearFolder(dir string, but ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(but, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// refill gives each script the same files. Removing what a script left costs as much as
// mounting anew, and does not wait for the kernel.
func refill() error {
	if err := empty(); err != nil {
		return fmt.Errorf("remove what a script left: %w", err)
	}
	for _, dir := range fixture.folders {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, file := range fixture.files {
		if err := os.WriteFile(file, []byte(filepath.Base(file)+"\n"), 0o600); err != nil {
			return err
		}
	}
	for file, text := range fixture.texts {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, name := range fixture.programs {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n: >/project/started\n"), 0o700); err != nil { //nolint:gosec // a program
			return err
		}
	}
	for name, target := range fixture.links {
		if err := os.Symlink(target, name); err != nil {
			return err
		}
	}
	return nil
}
