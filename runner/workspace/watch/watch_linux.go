package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// mask are the events that may change what is in a folder. Reading is none of them.
	mask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	// share is the part of the watches of a user that one Watch takes at most: editors and
	// other runs need some, too.
	share = 4
	// defaultWatches is the limit of a user where the system does not say it.
	defaultWatches = 8192
	// maxEvents bounds what is read at once. The queue of the system has 16,384 by default:
	// more come from programs that change files while they are read.
	maxEvents = 1 << 17
	// bufferBytes hold some hundred events.
	bufferBytes = 64 << 10
)

// local are the file systems that change only through this system, which reports it.
// What overlay and network file systems report is not all that happens to their files.
var local = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC}

// Watch watches folders. Any goroutine may add one; the other methods are for one goroutine.
type Watch struct {
	fd     int
	device uint64
	most   int

	mu      sync.Mutex
	folders map[int32]string
	err     error
}

// New returns a watch for folders on the file system of an open folder.
func New(root int) (*Watch, error) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(root, &fs), unix.Fstat(root, &st)); err != nil {
		return nil, fmt.Errorf("watch a folder: %w", err)
	}
	if !slices.Contains(local, int64(fs.Type)) { //nolint:unconvert // an int32 on some systems
		return nil, fmt.Errorf("watch a folder on a file system of type %#x: %w", fs.Type, ErrUnsupported)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch a folder: %w", err)
	}
	return &Watch{fd: fd, device: st.Dev, most: watches() / share, folders: map[int32]string{}}, nil
}

// watches is how many folders a user may watch.
func watches() int {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return defaultWatches
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return defaultWatches
	}
	return n
}

// Add watches an open folder under a path. What is done in it from now on is reported. After
// an error, all that is reported is that error.
func (w *Watch) Add(folder int, at string) {
	err := w.add(folder, at)
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf("watch folder %q: %w", at, err)
	}
}

// Err is the error of Add; nil if all folders are watched.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Watch) add(folder int, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(folder, &st); err != nil {
		return err
	}
	if st.Dev != w.device {
		return fmt.Errorf("it is another file system: %w", ErrUnsupported)
	}
	// By its descriptor: something else may have its name by now.
	n, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(folder), mask)
	if err != nil {
		return err
	}
	id := int32(n) //nolint:gosec // the system counts them in 32 bits
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, ok := w.folders[id]; ok && old != at {
		return fmt.Errorf("it is also at %q: %w", old, ErrUnsupported)
	}
	w.folders[id] = at
	if len(w.folders) > w.most {
		return fmt.Errorf("more than %d folders: %w", w.most, ErrUnsupported)
	}
	return nil
}

// Touched returns what was touched since the last time. An error, of Add as well, means that
// something may be missing, now and ever after.
func (w *Watch) Touched() (Touched, error) {
	t := Touched{Folders: map[string]bool{}, New: map[string]bool{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.read(&t)
	}
	return t, w.err
}

func (w *Watch) read(t *Touched) error {
	buf := make([]byte, bufferBytes)
	for events := 0; events < maxEvents; {
		n, err := unix.Read(w.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return fmt.Errorf("read what was touched: %w", err)
		}
		for rest := buf[:n]; len(rest) > 0; events++ {
			var e event
			if e, rest, err = cutEvent(rest); err != nil {
				return err
			}
			if err := w.take(t, e); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("more than %d changes: %w", maxEvents, ErrLost)
}

// event is a struct inotify_event.
type event struct {
	folder int32
	mask   uint32
	name   string
}

// cutEvent takes the next event off what was read.
func cutEvent(b []byte) (e event, rest []byte, err error) {
	if len(b) < unix.SizeofInotifyEvent {
		return e, nil, fmt.Errorf("an event of %d bytes: %w", len(b), ErrLost)
	}
	e.folder, e.mask = int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]) //nolint:gosec // so is the struct
	end := unix.SizeofInotifyEvent + int64(binary.NativeEndian.Uint32(b[12:]))
	if end > int64(len(b)) {
		return e, nil, fmt.Errorf("an event of more than %d bytes: %w", len(b), ErrLost)
	}
	name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
	e.name = string(name)
	return e, b[end:], nil
}

// take adds what an event says.
func (w *Watch) take(t *Touched, e event) error {
	if e.mask&(unix.IN_Q_OVERFLOW|unix.IN_UNMOUNT) != 0 {
		return fmt.Errorf("more changes than the system keeps: %w", ErrLost)
	}
	folder, ok := w.folders[e.folder]
	if e.mask&unix.IN_IGNORED != 0 { // it was removed: the folder that it was in says so
		delete(w.folders, e.folder)
		return nil
	}
	switch isFolder := e.mask&unix.IN_ISDIR != 0; {
	case !ok: // of a folder that was removed
	case e.name == "" && folder == "":
		return fmt.Errorf("the folder itself was changed: %w", ErrLost)
	case e.name == "": // the folder that it is in says so, too
	case isFolder && e.mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
		return fmt.Errorf("folder %q was moved: %w", path.Join(folder, e.name), ErrLost)
	case isFolder && e.mask&(unix.IN_CREATE|unix.IN_ATTRIB) != 0:
		t.New[path.Join(folder, e.name)] = true
		fallthrough
	default:
		t.Folders[folder] = true
	}
	return nil
}

// Close ends the watch.
func (w *Watch) Close() { _ = unix.Close(w.fd) }
