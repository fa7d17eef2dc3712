package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one whose system call is looked at: what is in its memory, and where its paths
// lead. It waits meanwhile, but its threads and those that share its memory do not.
type process struct {
	tid int
	// dir is its folder in /proc.
	dir string
	// memory is a descriptor of its memory, none before it is needed.
	memory int
}

func newProcess(tid int) *process {
	return &process{tid: tid, dir: "/proc/" + strconv.Itoa(tid), memory: none}
}

func (p *process) close() {
	if p.memory != none {
		_ = unix.Close(p.memory)
	}
}

// errUnread is the error of an address that cannot be read.
var errUnread = errors.New("the memory cannot be read")

// read fills b from an address, as far as there is memory, and returns how much it was.
func (p *process) read(address uint64, b []byte) (int, error) {
	if p.memory == none {
		fd, err := unix.Open(p.dir+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, errUnread
		}
		p.memory = fd
	}
	if address > 1<<63-1-uint64(len(b)) {
		return 0, errUnread
	}
	n, err := unix.Pread(p.memory, b, int64(address)) //nolint:gosec // bounded above
	if err != nil || n <= 0 {
		return 0, errUnread
	}
	return n, nil
}

const (
	// maxPath is the longest path that the kernel takes, its end included.
	maxPath = 4096
	// firstRead is how much of a text is read at first: most paths are shorter.
	firstRead = 256
)

// text reads a text that ends with NUL, of at most so many bytes. Cut reports that it is
// longer.
func (p *process) text(address uint64, most int) (s string, cut bool, err error) {
	var first [firstRead]byte
	n, err := p.read(address, first[:min(firstRead, most)])
	if err != nil {
		return "", false, err
	}
	if end := bytes.IndexByte(first[:n], 0); end >= 0 {
		return string(first[:end]), false, nil
	}
	b := make([]byte, most)
	if n, err = p.read(address, b); err != nil {
		return "", false, err
	}
	if end := bytes.IndexByte(b[:n], 0); end >= 0 {
		return string(b[:end]), false, nil
	}
	if n < most {
		return "", false, errUnread // it ends where no memory is: the kernel refuses it, too
	}
	return string(b), true, nil
}

// path reads a path.
func (p *process) path(address uint64) (string, error) {
	s, cut, err := p.text(address, maxPath)
	if cut {
		return "", unix.ENAMETOOLONG
	}
	return s, err
}

// words reads an array of texts: the arguments of a program, at most so many and so many
// bytes. Cut reports that there is more.
func (p *process) words(address uint64, most, size int) (all []string, cut bool) {
	var pointers [32 * 8]byte
	for len(all) < most {
		n, err := p.read(address, pointers[:])
		if err != nil || n < 8 {
			return all, true
		}
		for at := 0; at+8 <= n; at += 8 {
			pointer := binary.LittleEndian.Uint64(pointers[at:])
			if pointer == 0 {
				return all, false
			}
			if len(all) == most || size <= 0 {
				return all, true
			}
			word, long, err := p.text(pointer, size)
			if err != nil {
				return all, true
			}
			all = append(all, word)
			if size -= len(word) + 1; long {
				return all, true
			}
		}
		address += uint64(n &^ 7) //nolint:gosec // not negative
	}
	return all, true
}

// target is what a path leads to: a name in a folder, whether something has the name or not.
type target struct {
	// folder is without links, name is not "." or "..". Neither is set for what has no name
	// that the rules of a process could be about, such as a pipe: that has a label.
	folder, name string
	label        string
	there        bool
	// slash reports that one is at the end of the path: it can only be a folder.
	slash bool
	// stat is that of what is there. It is a link only where the last link is not followed.
	stat unix.Stat_t
}

func (t *target) path() string { return path.Join(t.folder, t.name) }

func (t *target) nameless() bool { return t.folder == "" }

func (t *target) kind() uint32 { return t.stat.Mode & unix.S_IFMT }

// last is what is done with a link at the end of a path.
type last int

const (
	follow last = iota
	// keep does not follow it, unless a slash comes after it.
	keep
	// never does not follow it in any case: it is the name that counts.
	never
)

// start is the folder that paths are relative to.
func (p *process) start(dir int32) string {
	if dir == unix.AT_FDCWD {
		return p.dir + "/cwd"
	}
	return p.dir + "/fd/" + strconv.Itoa(int(dir))
}

// find follows a path as the process would. An error is one that the system call has, too.
func (p *process) find(dir int32, name string, how last) (t target, err error) {
	if name == "" {
		return t, unix.ENOENT
	}
	if t, ok := p.plain(dir, name, how); ok {
		return t, nil
	}
	if t, err = p.walk(dir, name, how); err == nil && t.slash && how != never && t.there && t.kind() != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	return t, err
}

// maxPlain is how many links plain follows.
const maxPlain = 8

// plain finds what most paths lead to, without a look at each folder on the way: those
// without dots, in a folder to which no link leads but one in the root folder (/bin), and
// not in /proc or /dev, where links depend on who follows them.
func (p *process) plain(dir int32, name string, how last) (t target, ok bool) {
	full := name
	if name[0] != '/' {
		var buf [maxPath]byte
		n, err := unix.Readlink(p.start(dir), buf[:])
		if err != nil || n == 0 || n == len(buf) || buf[0] != '/' {
			return t, false
		}
		full = string(buf[:n]) + "/" + name
	}
	if !p.rooted() {
		return t, false
	}
	for range maxPlain {
		if path.Clean(full) != full || full == "/" || strings.HasPrefix(full, "/proc/") || strings.HasPrefix(full, "/dev/") {
			return t, false
		}
		if t, ok = lookUp(full); !ok {
			return t, false
		}
		if !t.there || t.kind() != unix.S_IFLNK || how != follow {
			return t, true
		}
		leads, err := readLink(unix.AT_FDCWD, full)
		if err != nil || strings.HasSuffix(leads, "/") {
			return t, false
		}
		full = leads
		if leads[0] != '/' {
			full = strings.TrimSuffix(t.folder, "/") + "/" + leads
		}
		for up := t.folder; strings.HasPrefix(leads, "../"); { // the folder has no links on its way
			up, leads = path.Dir(up), leads[len("../"):]
			full = strings.TrimSuffix(up, "/") + "/" + leads
		}
	}
	return t, false
}

// lookUp finds a path without dots if no link is on the way to its folder, but one in the
// root folder.
func lookUp(full string) (t target, ok bool) {
	folder, base := path.Split(full)
	at, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return t, false
	}
	defer func() { _ = unix.Close(at) }()
	if t.folder, err = named(at); err != nil {
		return t, false
	}
	if t.name = base; t.folder != "/" {
		folder = strings.TrimSuffix(folder, "/")
	}
	if t.folder != folder {
		first, rest, _ := strings.Cut(folder[1:], "/")
		leads, err := readLink(unix.AT_FDCWD, "/"+first)
		if err != nil || path.Join("/", leads, rest) != t.folder || strings.HasPrefix(t.folder, "/proc/") || strings.HasPrefix(t.folder, "/dev/") {
			return t, false
		}
	}
	if err := unix.Fstatat(at, base, &t.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return t, err == unix.ENOENT //nolint:errorlint // a number of the kernel
	}
	t.there = true
	return t, true
}

// readLink is the text of a link.
func readLink(at int, name string) (string, error) {
	var buf [maxPath]byte
	n, err := unix.Readlinkat(at, name, buf[:])
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(buf[:max(n, 0)]), err
}

// rooted reports whether the process has the root folder that this one has.
func (p *process) rooted() bool {
	var buf [2]byte
	n, err := unix.Readlink(p.dir+"/root", buf[:])
	return err == nil && n == 1
}

// named is the path of what a descriptor of this process has open.
func named(fd int) (string, error) {
	var buf [maxPath]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

const (
	// maxLinks is how many links the kernel follows in one path.
	maxLinks = 40
	procRoot = 1 // the number of the root folder of a /proc
)

// walk follows a path name by name.
func (p *process) walk(dir int32, rest string, how last) (t target, err error) {
	at, err := p.begin(dir, rest)
	if err != nil {
		return t, err
	}
	defer func() { _ = unix.Close(at) }()
	enter := func(next int, err error) error {
		if err == nil {
			_ = unix.Close(at)
			at = next
		}
		return err
	}
	for links := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		comp, more, slash := strings.Cut(rest, "/")
		end := strings.Trim(more, "/") == ""
		if comp == "" || comp == "." && end {
			t, err = opened(at)
			t.slash = true // where there is a dot, or nothing, there is a folder
			return t, err
		}
		if comp == "." || comp == ".." {
			if comp == ".." {
				if err := enter(unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)); err != nil {
					return t, err
				}
			}
			rest = more
			continue
		}
		err := unix.Fstatat(at, comp, &t.stat, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && (err != unix.ENOENT || !end) { //nolint:errorlint // a number of the kernel
			return t, err
		}
		t.there = err == nil
		if t.there && t.kind() == unix.S_IFLNK && (!end || how == follow || how == keep && slash) {
			if links++; links > maxLinks {
				return t, unix.ELOOP
			}
			leads, err := p.link(at, comp)
			if err != nil {
				return t, err
			}
			if leads == "" { // no path leads there
				if err := enter(unix.Openat(at, comp, unix.O_PATH|unix.O_CLOEXEC, 0)); err != nil {
					return t, err
				}
				if end {
					t, err = opened(at)
					t.slash = slash
					return t, err
				}
				rest = more
				continue
			}
			if leads[0] == '/' {
				if err := enter(p.begin(dir, leads)); err != nil {
					return t, err
				}
			}
			if rest = leads; slash {
				rest += "/" + more
			}
			continue
		}
		if end {
			t.name, t.slash = comp, slash
			t.folder, err = named(at)
			return t, err
		}
		if err := enter(unix.Openat(at, comp, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)); err != nil {
			return t, err
		}
		rest = more
	}
}

// begin opens the folder that a path begins in.
func (p *process) begin(dir int32, name string) (int, error) {
	from := p.dir + "/root"
	if name[0] != '/' {
		from = p.start(dir)
	}
	return unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
}

// link is the text of a link; "" for one in /proc that leads where the kernel knows, such as
// to an open file. Those of /proc itself to the process that reads them are those of the
// process.
func (p *process) link(at int, name string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(at, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return "", err
		}
		switch {
		case st.Ino != procRoot:
			return "", nil
		case name == "self":
			return strconv.Itoa(p.tid), nil
		case name == "thread-self":
			return strconv.Itoa(p.tid) + "/task/" + strconv.Itoa(p.tid), nil
		}
	}
	return readLink(at, name)
}

// gone is how the kernel marks the path of a file that has been removed.
const gone = " (deleted)"

// opened is the target that a descriptor of this process has open.
func opened(fd int) (t target, err error) {
	if err := unix.Fstat(fd, &t.stat); err != nil {
		return t, err
	}
	t.there = true
	at, err := named(fd)
	if err != nil {
		return t, err
	}
	if t.stat.Nlink == 0 {
		at = strings.TrimSuffix(at, gone)
	}
	if !strings.HasPrefix(at, "/") || t.stat.Nlink == 0 && strings.HasPrefix(at, "/memfd:") {
		t.label = strings.TrimPrefix(at, "/")
		return t, nil
	}
	t.folder, t.name = path.Split(at)
	if len(t.folder) > 1 {
		t.folder = strings.TrimSuffix(t.folder, "/")
	}
	return t, nil
}

// descriptor is what the process has open.
func (p *process) descriptor(fd int32) (t target, err error) {
	at, err := unix.Open(p.dir+"/fd/"+strconv.Itoa(int(fd)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return t, err
	}
	defer func() { _ = unix.Close(at) }()
	return opened(at)
}
