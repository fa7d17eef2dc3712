package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

// workspace is the folder beneath which every file is opened. Symlinks that
// lead out of it are refused by os.Root, also when they appear in the middle of
// an operation.
type workspace struct {
	root *os.Root
	// dir is the folder as the call names it, real the same without symlinks.
	dir, real string
	// approved: this is not the workspace but a folder outside, which was approved for one
	// call; writable: the call may change it; only, if it is not empty, is the one file in
	// it that was approved.
	approved, writable bool
	only               string
}

// openWorkspace opens the folder that a call names.
func openWorkspace(dir string) (*workspace, error) {
	if !filepath.IsAbs(dir) {
		return nil, sdk.Errorf("this call has no workspace (got %q): the file tools serve only a workspace", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, sdk.Errorf("open the workspace: %w", err)
	}
	w := &workspace{root: root, dir: filepath.Clean(dir)}
	if w.real, err = realPath(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return w, nil
}

func (w *workspace) close() { _ = w.root.Close() }

// rel turns a path of the model's into one beneath the root, by its words
// alone: what symlinks make of it is decided when it is opened.
func (w *workspace) rel(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", sdk.Errorf("path %q holds a NUL character", name)
	}
	if name == "" {
		return "", sdk.Errorf("path is empty: name a file or a folder of the workspace, %q is the workspace itself", ".")
	}
	if !filepath.IsAbs(name) {
		if clean := filepath.Clean(name); filepath.IsLocal(clean) {
			return clean, nil
		}
		return "", w.outside(name)
	}
	clean := filepath.Clean(name)
	for _, base := range []string{w.dir, w.real} {
		if rel, ok := beneath(base, clean); ok {
			return rel, nil
		}
	}
	return "", w.outside(name)
}

// beneath returns name relative to base, if it is base or within it. Both are clean.
func beneath(base, name string) (string, bool) {
	if name == base {
		return ".", true
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(base, "/")+"/")
	return rest, ok
}

// outside is the refusal of a path that is not in the workspace.
func (w *workspace) outside(name string) error {
	return sdk.Errorf("%s is outside the workspace %s (external_directory): the file tools serve only files of the workspace, and paths that the policy or a person allows by name. Use a path within it, or have the file copied there", name, w.dir)
}

// fail turns an error of the file system into one that helps the model continue.
func (w *workspace) fail(verb, rel string, err error) error {
	var errno syscall.Errno
	shown := w.show(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.missing(rel)
	case errors.Is(err, syscall.ENOTDIR):
		return sdk.Errorf("%s %s: a part of the path is a file, not a folder", verb, shown)
	case errors.Is(err, syscall.ELOOP):
		return sdk.Errorf("%s %s: too many symlinks", verb, shown)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EROFS):
		return sdk.Errorf("%s %s: it is read-only in the sandbox of this run, as every file is that an entry or a rule of the policies denies to edit, whatever allowed this call. Leave it as it is", verb, shown)
	case errors.As(err, &errno):
		return sdk.Errorf("%s %s: %s", verb, shown, errno.Error())
	case errors.As(err, new(*fs.PathError)) && w.approved:
		return sdk.Errorf("%s leads out of %s through a symlink: only that was approved", shown, w.real)
	case errors.As(err, new(*fs.PathError)):
		// The only path errors of os.Root that come from no system call are its refusals.
		return sdk.Errorf("%s leads outside the workspace %s through a symlink (external_directory): the file tools serve only files of the workspace, and follow only relative links within it", rel, w.dir)
	}
	return sdk.Errorf("%s %s: %w", verb, shown, err)
}

// open opens a regular file for reading and refuses everything else without waiting:
// opening a pipe would block until another process opens it for writing.
func (w *workspace) open(rel string) (*os.File, fs.FileInfo, error) {
	f, info, err := openRegular(w.root, rel)
	if err == nil {
		if err := w.confirm(f); err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		return f, info, nil
	}
	if errors.As(err, new(*irregularError)) {
		return nil, nil, sdk.Errorf("%w", err)
	}
	return nil, nil, w.fail("open", rel, err)
}

// irregularError: the name is that of neither a file nor a folder.
type irregularError struct {
	name string
	mode fs.FileMode
}

func (e *irregularError) Error() string {
	what := "a special file"
	switch {
	case e.mode.IsDir():
		what = "a folder"
	case e.mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case e.mode&fs.ModeSocket != 0:
		what = "a socket"
	case e.mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Sprintf("%s is %s, not a file", e.name, what)
}

// openRegular looks before it opens, because opening some devices already does
// something, and again after, because the name may mean another file by then.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &irregularError{name, info.Mode()}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &irregularError{name, info.Mode()}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// realPath asks the kernel where an open folder is: the answer is about the
// folder that is held, so nothing can be swapped between question and use.
func realPath(root *os.Root) (string, error) {
	f, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return realFile(f)
}

// realFile is realPath for an open file.
func realFile(f *os.File) (string, error) {
	p, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return "", sdk.Errorf("find the real path of %s: %w", f.Name(), err)
	}
	return p, nil
}

// inGit reports whether a path goes through git's own folder, whose files run programs:
// hooks, filters, the configured pager.
func inGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// parent returns the folder of a clean relative path.
func parent(rel string) string { return path.Dir(rel) }
