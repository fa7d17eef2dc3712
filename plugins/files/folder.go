package files

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxNames bounds what is read of one folder.
const maxNames = 100_000

// entry is a name in a folder.
type entry struct {
	name string
	mode fs.FileMode
}

// shown is the name as a model sees it: a folder ends with a slash.
func (e entry) shown() string {
	if e.mode.IsDir() {
		return e.name + "/"
	}
	return e.name
}

// folder is an open folder. What is opened in it by name is in it, whatever becomes of
// the folders above. It is a descriptor rather than an os.Root because a search opens
// thousands of files.
type folder struct {
	dir   *os.File
	fd    int
	users atomic.Int32
}

func newFolder(dir *os.File) *folder {
	return (&folder{dir: dir, fd: int(dir.Fd())}).keep()
}

// keep returns the folder to one more user, who has to release it.
func (d *folder) keep() *folder {
	d.users.Add(1)
	return d
}

// release closes the folder when its last user has released it.
func (d *folder) release() {
	if d.users.Add(-1) == 0 {
		_ = d.dir.Close()
	}
}

// folder opens a folder in this one, and does not follow a link that has taken its name.
func (d *folder) folder(name string) (*folder, error) {
	fd, err := openat(d.fd, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return newFolder(os.NewFile(uintptr(fd), name)), nil
}

// regular opens a file that the folder's entries called regular. It refuses everything
// else that has taken its name, and does not wait for a pipe.
func (d *folder) regular(name string) (*plainFile, error) {
	fd, err := openat(d.fd, name, 0)
	if err != nil {
		return nil, err
	}
	f := &plainFile{fd: fd}
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return nil, errors.Join(err, f.Close())
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.Join(&irregularError{name: name}, f.Close())
	}
	f.size = st.Size
	return f, nil
}

// openat opens a name in a folder. A name from a folder's entries has no slash.
func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// plainFile is an open regular file without what os.File adds: none of its reads waits.
type plainFile struct {
	fd   int
	size int64
}

func (f *plainFile) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(f.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f *plainFile) Close() error { return unix.Close(f.fd) }

// open opens a folder of the workspace.
func (w *workspace) openFolder(rel string) (*folder, error) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newFolder(f), nil
}

// folder returns the entries of a folder of the workspace.
func (w *workspace) folder(rel string) ([]entry, error) {
	d, err := w.openFolder(rel)
	if err != nil {
		return nil, err
	}
	defer d.release()
	return d.entries()
}

// entries returns what is in the folder, so sorted that a walk in this order meets paths
// in the order of their bytes.
func (d *folder) entries() ([]entry, error) {
	var all []entry
	for len(all) < maxNames {
		part, err := d.dir.ReadDir(1024)
		for _, d := range part {
			all = append(all, entry{d.Name(), d.Type()})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, byPath)
	return all, nil
}

// byPath compares the names as they are shown, without making them.
func byPath(a, b entry) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return cmp.Compare(a.tail(n), b.tail(n))
}

// tail is the byte at a position of the name as it is shown; -1 is its end.
func (e entry) tail(at int) int {
	switch {
	case at < len(e.name):
		return int(e.name[at])
	case at == len(e.name) && e.mode.IsDir():
		return '/'
	}
	return -1
}

// readFolder is read for a folder: its entries, in pages like lines.
func (w *workspace) readFolder(rel string, win window) (*sdk.Result, error) {
	all, err := w.folder(rel)
	if err != nil {
		return nil, w.fail("read", rel, err)
	}
	if win.first > len(all) && win.first > 1 {
		return nil, sdk.Errorf("offset %d is past the end of %s, which has %s", win.first, w.show(rel), count(len(all), "entry"))
	}
	if len(all) == 0 {
		return &sdk.Result{Title: w.show(rel), Text: "(empty folder)"}, nil
	}
	var b strings.Builder
	n := 0
	for _, e := range all[win.first-1:] {
		name := readable([]byte(e.shown()))
		if n == min(win.lines, maxLines-1) || b.Len()+len(name) > maxText-remark {
			b.WriteString("(entries " + strconv.Itoa(win.first) + "-" + strconv.Itoa(win.first+n-1) + " of " + strconv.Itoa(len(all)) + "; go on with offset " + strconv.Itoa(win.first+n) + ")")
			break
		}
		b.WriteString(name + "\n")
		n++
	}
	return &sdk.Result{Title: w.show(rel), Text: b.String(), Metadata: fileData{Path: w.show(rel)}}, nil
}
