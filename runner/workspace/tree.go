package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// gitName is the folder of git: copied, but neither compared nor applied.
const gitName = ".git"

// fileBatch is how many files of one folder a worker takes at a time.
const fileBatch = 32

// errTooDeep is why a folder is left out whose path no system call takes.
var errTooDeep = fmt.Errorf("its path is longer than %d bytes", unix.PathMax)

// maxNames bounds the paths of a tree, which are all kept: those of folders in
// folders grow with the square of their depth.
const maxNames = 256 << 20

// tree walks a folder with a few workers and, when it has a target, copies it
// on the way. Folders are opened one below the other without following links,
// so that a link swapped in meanwhile leads nowhere.
type tree struct {
	ctx       context.Context //nolint:containedctx // used for one walk
	filter    *filter
	notes     interface{ note(string, ...any) }
	sizeLimit int64
	maxFiles  int
	// maxNames replaces the constant of that name; 0 is the constant.
	maxNames int64
	root     string
	// left are names at the top that are not part of the tree.
	left []string
	// base are the files that this tree is to be compared with. A large file that
	// cannot be equal to the one in it is not read; nil reads all.
	base map[Path]*Entry
	// target of a copy, or "".
	target string
	// pack stores the texts found; nil if no diff is needed.
	pack *pack

	known map[Path]*Entry
	files atomic.Int64
	bytes atomic.Int64
	names atomic.Int64

	mu      sync.Mutex
	wake    *sync.Cond
	jobs    []job
	open    int
	err     error
	entries []Entry
	folders []madeFolder
	hidden  []Path
}

// job is a folder to list, or some files of one.
type job struct {
	dir   *folder
	name  string
	files []found
}

type found struct {
	name string
	stat unix.Stat_t
}

// folder is an open folder. It is closed when the last job in it is done.
type folder struct {
	path     string
	git      bool
	src, dst *os.File
	users    atomic.Int32
}

// madeFolder gets its times last: filling it changes them.
type madeFolder struct {
	path         string
	mode         uint32
	atime, mtime unix.Timespec
}

func (f *folder) child(name string) string { return path.Join(f.path, name) }

func (f *folder) release() {
	if f.users.Add(-1) > 0 {
		return
	}
	_ = f.src.Close()
	if f.dst != nil {
		_ = f.dst.Close()
	}
}

// walk returns the snapshot of the tree, or of its copy. Files whose signature
// is that of known are not read.
func (t *tree) walk(known *Snapshot) (*Snapshot, error) {
	t.known = known.index()
	if known != nil {
		t.entries = make([]Entry, 0, len(known.Entries)+fileBatch)
	}
	t.wake = sync.NewCond(&t.mu)
	stop := context.AfterFunc(t.ctx, func() { t.fail(context.Cause(t.ctx)) })
	defer stop()
	top := &folder{}
	if err := t.openTop(top); err != nil {
		return nil, err
	}
	t.push(job{dir: top})
	var workers sync.WaitGroup
	for range min(4, runtime.GOMAXPROCS(0)) {
		workers.Go(t.work)
	}
	workers.Wait()
	for _, j := range t.jobs { // left over after a failure
		j.dir.release()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	if err := t.dressFolders(); err != nil {
		return nil, err
	}
	s := newSnapshot(t.entries, currentTick())
	slices.Sort(t.hidden)
	s.Hidden = slices.Compact(t.hidden)
	return s, nil
}

func (t *tree) openTop(top *folder) (err error) {
	// The root itself may be a link: it is what the user named.
	if top.src, err = os.Open(t.root); err != nil || t.target == "" {
		return err
	}
	if top.dst, err = os.Open(t.target); err != nil {
		_ = top.src.Close()
	}
	return err
}

func (t *tree) work() {
	var buf []byte
	for {
		j, ok := t.next()
		if !ok {
			return
		}
		var err error
		if j.files != nil {
			err = t.doFiles(j, &buf)
		} else {
			err = t.doFolder(j)
		}
		j.dir.release()
		t.done(err)
	}
}

func (t *tree) push(j job) {
	j.dir.users.Add(1)
	t.mu.Lock()
	t.jobs = append(t.jobs, j)
	t.open++
	t.mu.Unlock()
	t.wake.Signal()
}

// next takes the newest job: depth first keeps few folders open.
func (t *tree) next() (job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.jobs) == 0 && t.open > 0 && t.err == nil {
		t.wake.Wait()
	}
	if len(t.jobs) == 0 || t.err != nil {
		return job{}, false
	}
	j := t.jobs[len(t.jobs)-1]
	t.jobs = t.jobs[:len(t.jobs)-1]
	return j, true
}

func (t *tree) done(err error) {
	if err != nil {
		t.fail(err)
	}
	t.mu.Lock()
	t.open--
	last := t.open == 0
	t.mu.Unlock()
	if last {
		t.wake.Broadcast()
	}
}

func (t *tree) fail(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	t.wake.Broadcast()
}

func (t *tree) keep(entries ...Entry) {
	t.mu.Lock()
	t.entries = append(t.entries, entries...)
	t.mu.Unlock()
}

// doFolder lists a folder: the one of the job, or the one called name in it.
func (t *tree) doFolder(j job) error {
	dir := j.dir
	if j.name != "" {
		var err error
		if dir, err = t.enter(j.dir, j.name); dir == nil {
			return err
		}
		dir.users.Add(1)
		defer dir.release()
	}
	var batch []found
	for {
		names, err := dir.src.Readdirnames(512)
		for _, name := range names {
			f := found{name: name}
			if t.sort(dir, &f) {
				batch = append(batch, f)
			}
			if len(batch) == fileBatch {
				t.push(job{dir: dir, files: batch})
				batch = nil
			}
		}
		switch {
		case t.stopped():
			return nil
		case errors.Is(err, io.EOF) || (err == nil && len(names) == 0):
			if batch != nil {
				t.push(job{dir: dir, files: batch})
			}
			return nil
		case err != nil:
			t.hide(dir, err)
			return nil
		}
	}
}

func (t *tree) stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

// sort looks at one name and reports whether it is a file or link to take.
func (t *tree) sort(dir *folder, f *found) bool {
	p := dir.child(f.name)
	if err := unix.Fstatat(int(dir.src.Fd()), f.name, &f.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if !vanished(err) {
			t.hide(dir, err) // a folder that may be listed but not searched
		}
		return false
	}
	if t.filter.excludes(p, &f.stat) {
		return false
	}
	if dir.path == "" && isStageName(f.name) {
		if slices.Contains(t.left, f.name) {
			return false
		}
		t.notes.note("%q is left of a change to these files that was interrupted: some may be half changed until the run that made it is resumed, or applied again", p)
		if t.target != "" {
			return false
		}
	}
	git := dir.git || f.name == gitName
	if git && t.target == "" {
		return false
	}
	if t.files.Add(1) > int64(t.maxFiles) {
		t.fail(fmt.Errorf("more than %d files; leave folders out with workspace.exclude: %w", t.maxFiles, ErrTooLarge))
		return false
	}
	if most := cmp.Or(t.maxNames, maxNames); t.names.Add(int64(len(p))) > most {
		t.fail(fmt.Errorf("paths of more than %d bytes together; leave folders out with workspace.exclude: %w", most, ErrTooLarge))
		return false
	}
	switch f.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		t.push(job{dir: dir, name: f.name})
		return false
	case unix.S_IFREG:
		if f.name == gitName {
			t.notes.note("%q is a file that points to a repository elsewhere: git in the copy works on that one", p)
		}
		return t.count(f.stat.Size) == nil
	case unix.S_IFLNK:
		return true
	}
	t.notes.note("%q was left out: it is a socket, FIFO or device", p)
	return false
}

// count adds to the size and fails the walk at the limit.
func (t *tree) count(n int64) error {
	if t.bytes.Add(n) <= t.sizeLimit {
		return nil
	}
	err := fmt.Errorf("more than the limit of %d bytes; raise workspace.sizeLimit or leave folders out with workspace.exclude: %w", t.sizeLimit, ErrTooLarge)
	t.fail(err)
	return err
}

// enter opens the folder called name; nil when it is not to be walked.
func (t *tree) enter(parent *folder, name string) (*folder, error) {
	d := &folder{path: parent.child(name), git: parent.git || name == gitName}
	if len(d.path) >= unix.PathMax { // nothing can be done with it by its path, and git's own takes part
		t.hide(d, errTooDeep)
		return nil, nil
	}
	fd, err := unix.Openat(int(parent.src.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.hide(d, err)
		return nil, nil
	}
	d.src = os.NewFile(uintptr(fd), d.path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = d.src.Close()
		return nil, fmt.Errorf("look at %q: %w", d.path, err)
	}
	if !d.git {
		t.keep(Entry{Path: Path(d.path), Type: TypeDir, Mode: uint32(st.Mode) & 0o777})
	}
	if t.target == "" {
		return d, nil
	}
	if err := t.makeFolder(parent, d, name, &st); err != nil {
		_ = d.src.Close()
		return nil, err
	}
	return d, nil
}

// hide notes a folder that cannot be listed. What is known of it stays as it
// was: it must not look deleted.
func (t *tree) hide(d *folder, err error) {
	t.noteLeftOut(d.path, err)
	if t.target != "" || vanished(err) || d.git {
		return
	}
	t.mu.Lock()
	t.hidden = append(t.hidden, Path(d.path))
	t.mu.Unlock()
}

func (t *tree) makeFolder(parent, d *folder, name string, st *unix.Stat_t) error {
	at := int(parent.dst.Fd())
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return fmt.Errorf("make folder %q: %w", d.path, err)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make folder %q: %w", d.path, err)
	}
	d.dst = os.NewFile(uintptr(fd), d.path)
	t.mu.Lock()
	// The owner may always write: the copy is the run's own.
	t.folders = append(t.folders, madeFolder{d.path, uint32(st.Mode)&0o777 | 0o700, st.Atim, st.Mtim})
	t.mu.Unlock()
	return nil
}

// dressFolders gives the made folders their modes and times, the deepest first.
func (t *tree) dressFolders() error {
	for _, f := range slices.Backward(t.folders) {
		p := filepath.Join(t.target, filepath.FromSlash(f.path))
		if err := unix.Chmod(p, f.mode); err != nil {
			return fmt.Errorf("set the mode of %q: %w", f.path, err)
		}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{f.atime, f.mtime}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("set the times of %q: %w", f.path, err)
		}
	}
	return nil
}

func (t *tree) noteLeftOut(p string, err error) {
	if !vanished(err) {
		t.notes.note("%q was left out: %v", brief(p), err)
	}
}

// vanished reports whether the error is that of a path which changed since it was listed.
func vanished(err error) bool { return absent(err) || errors.Is(err, errNotRegular) }

// maxShown is how much of a long path is shown.
const maxShown = 300

// brief is a path, or the beginning of a long one.
func brief(p string) string {
	if len(p) <= maxShown {
		return p
	}
	return p[:maxShown] + "…"
}
