package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

// A call gets the paths outside the workspace that its decision lists, and no
// others. They are checked right before the call begins, because the files may
// have changed since the decision. A path that cannot be given safely is left
// out, and the result reports why:
//
//	at the path                                   the call
//	a regular file with one name                  gets it
//	a folder                                      gets it, without the files in it that a policy denies or that have names elsewhere
//	nothing, and the call is a write              gets an empty file, which is removed if the call fails
//	nothing, otherwise                            does not get it
//	a link on the way                             does not get it: it was not there when the call was judged
//	a device, pipe or socket                      does not get it
//	below /proc, /sys, /dev or /run               does not get it
//	a folder of agentctl, a part or a parent      does not get it
//	the workspace, or a folder around it          does not get it
//	in git's own folder, to be changed            does not get it: files there run programs
//	a system folder, and the tool is an image     does not get it: the image has its own

// outside is what one call gets of the paths outside the workspace.
type outside struct {
	Outside
	// notes report which paths the call does not get, and why.
	notes []string
	// created is the file that was made for the call.
	created *createdFile
}

// maxInFolder bounds the files of a folder that are checked for one call.
const maxInFolder = 50_000

// outsideFor looks at the paths that the decision on a call lists.
func (r *Registry) outsideFor(ctx context.Context, d *Definition, call message.ToolCall, workspace string) (*outside, error) {
	o := &outside{}
	for _, p := range call.Outside {
		masked, err := r.openable(ctx, p, workspace)
		if d.Contained() && err == nil {
			err = boxable(p.Real, masked)
		}
		if errors.Is(err, fs.ErrNotExist) && p.Writable && d.Creates {
			o.created, err = create(p.Real, workspace)
		}
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), o.close(false))
		}
		if err != nil {
			o.notes = append(o.notes, fmt.Sprintf("%s is not available to this call: %v", p.Name, err))
			continue
		}
		o.Paths, o.Masked = append(o.Paths, p), append(o.Masked, masked...)
	}
	return o, nil
}

// openable returns why a call cannot get a path, or which files in it stay
// hidden.
func (r *Registry) openable(ctx context.Context, p message.OutsidePath, workspace string) (masked []string, err error) {
	if err := r.allowed(p.Real, workspace); err != nil {
		return nil, err
	}
	if p.Writable && slices.Contains(strings.Split(strings.ToLower(p.Real), "/"), ".git") {
		return nil, errors.New("it is in git's own folder, whose files run programs")
	}
	info, err := os.Lstat(p.Real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no such file or folder: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if at, err := filepath.EvalSymlinks(p.Real); err != nil || at != p.Real {
		return nil, errors.New("a link was put on the way to it after the call was judged")
	}
	names := []string{p.Real}
	switch {
	case info.IsDir():
		if names, masked, err = inFolder(ctx, p.Real); err != nil {
			return nil, err
		}
	case !info.Mode().IsRegular():
		return nil, errors.New("it is neither a file nor a folder")
	case links(info) > 1:
		return nil, errors.New("the file has several names, and only this one was judged")
	}
	if r.Masked == nil {
		return masked, nil
	}
	denied, err := r.Masked(ctx, names)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && len(denied) > 0 {
		return nil, errors.New("the policy lets nobody read it")
	}
	return append(masked, denied...), nil
}

// images are the folders that an image fills itself.
var images = []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/sbin", "/usr"}

// boxable refuses what a container cannot show as it is.
func boxable(leads string, masked []string) error {
	for _, dir := range images {
		if Below(leads, dir) {
			return fmt.Errorf("the tool runs in a container, whose %s is that of its image", dir)
		}
	}
	if len(masked) > 0 {
		return fmt.Errorf("%s in it has to stay hidden, which a container cannot do in a folder of the host: name a file, or a folder without it", masked[0])
	}
	return nil
}

// allowed refuses paths that no tool may see, whatever a policy allows.
func (r *Registry) allowed(leads, workspace string) error {
	for _, dir := range closed {
		if leads == "/" || Below(leads, dir) {
			return fmt.Errorf("no call gets files of %s", dir)
		}
	}
	for _, hidden := range r.Unseen {
		if Below(leads, hidden) || Below(hidden, leads) {
			return errors.New("it belongs to agentctl itself, or holds a folder that does")
		}
	}
	if Below(workspace, leads) {
		return errors.New("the workspace lies in it: name a folder that does not hold the workspace")
	}
	return nil
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert,nolintlint // it is another type elsewhere
	}
	return 1
}

// inFolder lists the files in a folder, as absolute paths, and those of them that
// have a name elsewhere, by which a rule may deny them.
func inFolder(ctx context.Context, dir string) (files, elsewhere []string, err error) {
	root, err := openReal(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	type file struct{ dev, ino uint64 }
	several, missing := map[file][]string{}, map[file]uint64{}
	todo, seen := []string{"."}, 0
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		in := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, err := readFolder(root, in, maxInFolder-seen)
		if err != nil {
			continue // what cannot be listed here is not accessible to the call either, or has just been removed
		}
		if seen += len(entries); seen >= maxInFolder {
			return nil, nil, fmt.Errorf("it holds more than %d files, too many to look at each: name a folder in it, or add it to spec.isolation.mounts of the Tool", maxInFolder)
		}
		for _, e := range entries {
			name := filepath.Join(in, e.Name())
			if e.IsDir() {
				todo = append(todo, name)
				continue
			}
			files = append(files, filepath.Join(dir, name))
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || links(info) < 2 {
				continue
			}
			st, _ := info.Sys().(*syscall.Stat_t) // links has read it
			id := file{uint64(st.Dev), st.Ino}    //nolint:unconvert,nolintlint // as above
			several[id], missing[id] = append(several[id], filepath.Join(dir, name)), links(info)
		}
	}
	for id, names := range several {
		if uint64(len(names)) < missing[id] {
			elsewhere = append(elsewhere, names...)
		}
	}
	slices.Sort(elsewhere)
	return files, elsewhere, nil
}

// readFolder opens nothing but a folder: a pipe that took its place is not waited for.
func readFolder(root *os.Root, name string, limit int) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.ReadDir(max(limit, 1))
}

// openReal opens a folder to which no link leads.
func openReal(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var named fs.FileInfo
		// The target of a link has another path, and the folder at this path is
		// another folder.
		if at, e := filepath.EvalSymlinks(dir); e != nil || at != dir {
			err = fmt.Errorf("%s is behind a link", dir)
		} else if named, err = os.Lstat(dir); err == nil && !os.SameFile(opened, named) {
			err = fmt.Errorf("%s has just been replaced", dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// createdFile is an empty file that was made for a call.
type createdFile struct {
	dir  *os.Root
	name string
	info fs.FileInfo
}

// create creates the file that a call of write is to fill. A sandbox can show
// only a file that exists, and mounting its folder instead would expose the
// other files in it.
func create(leads, workspace string) (*createdFile, error) {
	dir, err := openReal(filepath.Dir(leads))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its folder does not exist, and is not created outside the workspace")
	}
	if err != nil {
		return nil, err
	}
	c := &createdFile{dir: dir, name: filepath.Base(leads)}
	f, err := dir.OpenFile(c.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	// Tools of root run as the owner of the workspace.
	if top, e := os.Stat(workspace); e == nil && os.Geteuid() == 0 {
		if st, ok := top.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // otherwise the tool cannot write to it, and reports that
		}
	}
	c.info, err = f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, dir.Remove(c.name), dir.Close())
	}
	return c, nil
}

// close ends the call. A file that was created for the call and is still empty
// is removed, unless the call has succeeded.
func (o *outside) close(done bool) error {
	c := o.created
	if c == nil {
		return nil
	}
	o.created = nil
	now, err := c.dir.Lstat(c.name)
	if err == nil && !done && now.Size() == 0 && os.SameFile(now, c.info) {
		err = c.dir.Remove(c.name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, c.dir.Close())
}

// explain adds to a call that failed which paths it did not get.
func (o *outside) explain(reply *Reply) {
	if len(o.notes) == 0 || !reply.Failed && (reply.ExitCode == nil || *reply.ExitCode == 0) {
		return
	}
	reply.Output = strings.TrimSuffix(reply.Output, "\n") + "\n(" + strings.Join(o.notes, "; ") + ")"
}

// disks are those that the call may write to outside the workspace.
func (o *outside) disks() (free []func() (int64, bool)) {
	for _, p := range o.Paths {
		if p.Writable {
			free = append(free, FreeSpace(p.Real))
		}
	}
	return free
}

// paths are those outside the workspace that the call may use, as its server gets them.
func (o *outside) paths() (paths []host.OutsidePath) {
	for _, p := range o.Paths {
		paths = append(paths, host.OutsidePath{Name: p.Name, Path: p.Real, Writable: p.Writable})
	}
	return paths
}
