package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/workspace/watch"
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
	notes     noter
	sizeLimit int64
	maxFiles  int
	// maxNames replaces the constant of that name; 0 is the constant.
	maxNames int64
	root     string
	// left are names at the top that are not part of the tree.
	left []string
	// base are the files that this tree is to be compared with. A large file that
	// cannot be equal to the one in it is not read; nil reads all.
	base *Snapshot
	// target of a copy, or "".
	target string
	// pack stores the texts found; nil if no diff is needed.
	pack *pack
	// watch begins to watch each folder before it is listed; nil watches none.
	watch *watch.Watch
	// touched are the only folders that have to be listed, and what is new in them; nil lists
	// all.
	touched *watch.Touched

	// known is the tree as it was the last time, nil at first; same marks those of its
	// entries that are still as they were.
	known *Snapshot
	same  []bool
	files atomic.Int64
	bytes atomic.Int64
	names atomic.Int64
	// linked says that a file has several names.
	linked atomic.Bool

	mu   sync.Mutex
	wake *sync.Cond
	jobs []job
	open int
	err  error
	// entries are new, or not as they were known.
	entries []Entry
	folders []madeFolder
	hidden  []Path
	parts   []listed
}

// noter takes what a person should know.
type noter interface {
	note(format string, args ...any)
}

// job is a folder to list, or names of one to look at, or some files of one to read.
type job struct {
	dir   *folder
	name  string
	place int32
	names *part
	files []found
}

// found is a name with what is there. Its place is that of its entry in what is known, or
// unplaced.
type found struct {
	name  string
	place int32
	stat  unix.Stat_t
}

// folder is an open folder. It is closed when the last job in it is done.
type folder struct {
	path     string
	git      bool
	src, dst descriptor // dst is none where nothing is copied
	users    atomic.Int32
	// order are the places of what was in it the last time; see Snapshot.order.
	order []int32
}

// none is not an open file.
const none descriptor = -1

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
	f.close()
}

func (f *folder) close() {
	f.src.close()
	if f.dst != none {
		f.dst.close()
	}
}

// walk returns the snapshot of the tree, or of its copy. Files whose signature
// is that of known are not read.
func (t *tree) walk(known *Snapshot) (*Snapshot, error) {
	if known != nil {
		t.known, t.same = known, make([]bool, len(known.Entries))
	}
	return t.run(func() error {
		top := &folder{src: none, dst: none}
		if err := t.openTop(top); err != nil {
			return err
		}
		t.push(job{dir: top, place: unplaced})
		return nil
	})
}

// run does the jobs that begin gives it, and all that follow from them.
func (t *tree) run(begin func() error) (*Snapshot, error) {
	t.wake = sync.NewCond(&t.mu)
	stop := context.AfterFunc(t.ctx, func() { t.fail(context.Cause(t.ctx)) })
	defer stop()
	if err := begin(); err != nil {
		t.fail(err)
	}
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
	s := t.now(currentTick())
	slices.Sort(t.hidden)
	s.Hidden = slices.Compact(t.hidden)
	return s, nil
}

func (t *tree) openTop(top *folder) (err error) {
	// The root itself may be a link: it is what the user named.
	if top.src, err = openAny(t.root); err != nil || t.target == "" {
		return err
	}
	if top.dst, err = openAny(t.target); err != nil {
		top.src.close()
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
		switch {
		case j.files != nil:
			err = t.doFiles(j, &buf)
		case j.names != nil:
			t.doNames(j)
		default:
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

// at returns the entry at a place in what is known; nil if it is unplaced.
func (t *tree) at(place int32) *Entry {
	if place == unplaced {
		return nil
	}
	return &t.known.Entries[place]
}

// keepKnown keeps a folder or link, unless it is as it was known.
func (t *tree) keepKnown(place int32, e Entry) {
	if old := t.at(place); old != nil && old.equal(&e) {
		t.same[place] = true
		return
	}
	t.keep(e)
}

func (t *tree) keep(entries ...Entry) {
	t.mu.Lock()
	t.entries = append(t.entries, entries...)
	t.mu.Unlock()
}

func (t *tree) stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}

// sort reports whether what was found is a file or link to take.
func (t *tree) sort(dir *folder, f *found) bool {
	p := dir.child(f.name)
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
	if !t.countNames(1, int64(len(p))) {
		return false
	}
	switch f.stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if t.stays(Path(p), f) {
			return false
		}
		t.push(job{dir: dir, name: f.name, place: f.place})
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

// countNames adds to the number of files and the length of their paths, and fails the walk
// at the limits.
func (t *tree) countNames(files, bytes int64) bool {
	if t.files.Add(files) > int64(t.maxFiles) {
		t.fail(fmt.Errorf("more than %d files; leave folders out with workspace.exclude: %w", t.maxFiles, ErrTooLarge))
		return false
	}
	if most := cmp.Or(t.maxNames, maxNames); t.names.Add(bytes) > most {
		t.fail(fmt.Errorf("paths of more than %d bytes together; leave folders out with workspace.exclude: %w", most, ErrTooLarge))
		return false
	}
	return true
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
func (t *tree) enter(parent *folder, name string, place int32) (*folder, error) {
	d := &folder{path: parent.child(name), git: parent.git || name == gitName, dst: none}
	if len(d.path) >= unix.PathMax { // nothing can be done with it by its path, and git's own takes part
		t.hide(d, errTooDeep)
		return nil, nil
	}
	fd, err := unix.Openat(int(parent.src), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.hide(d, err)
		return nil, nil
	}
	d.src = descriptor(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		d.close()
		return nil, fmt.Errorf("look at %q: %w", d.path, err)
	}
	if !d.git {
		t.keepKnown(place, Entry{Path: Path(d.path), Type: TypeDir, Mode: uint32(st.Mode) & 0o777})
	}
	if t.target == "" {
		return d, nil
	}
	if err := t.makeFolder(parent, d, name, &st); err != nil {
		d.close()
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
	at := int(parent.dst)
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return fmt.Errorf("make folder %q: %w", d.path, err)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make folder %q: %w", d.path, err)
	}
	d.dst = descriptor(fd)
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
