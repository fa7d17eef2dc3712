package workspace

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// listBytes is how much of a folder is listed at a time: some hundred names.
const listBytes = 16 << 10

// ahead is how many of the names that were there the last time may be gone, one after the
// other, without that the next one is looked for by its path.
const ahead = 4

var listBuffers = sync.Pool{New: func() any { return new([listBytes]byte) }}

// part is a part of a folder, as the system lists it.
type part struct {
	// number counts the parts of a folder, from 0; before counts the names before it.
	number, before int
	buf            *[listBytes]byte
	size           int
}

// doFolder lists a folder: the one of the job, or the one called name in it.
func (t *tree) doFolder(j job) error {
	dir := j.dir
	if j.name != "" {
		var err error
		if dir, err = t.enter(j.dir, j.name, j.place); dir == nil {
			return err
		}
		dir.users.Add(1)
		defer dir.release()
	}
	if t.watch != nil {
		t.watch.Add(int(dir.src), dir.path)
	}
	return t.list(dir)
}

// list lists an open folder.
func (t *tree) list(dir *folder) error {
	if t.known != nil {
		dir.order = t.known.order[Path(dir.path)]
	}
	var last *part
	for number, before := 0, 0; !t.stopped(); number++ {
		p := &part{number: number, before: before, buf: listBuffers.Get().(*[listBytes]byte)}
		var err error
		p.size, err = dir.src.list(p.buf[:])
		if err != nil || p.size == 0 {
			listBuffers.Put(p.buf)
			if last != nil {
				t.doNames(job{dir: dir, names: last})
			}
			if err != nil {
				t.hide(dir, &os.PathError{Op: "readdirent", Path: dir.path, Err: err})
			}
			return nil
		}
		if last != nil {
			t.push(job{dir: dir, names: last})
		}
		last, before = p, before+countDirents(p.buf[:p.size])
	}
	return nil
}

// list reads names of a folder.
func (d descriptor) list(buf []byte) (int, error) {
	for {
		n, err := unix.ReadDirent(int(d), buf)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// doNames looks at the names of a part. A file that is as it was known costs one system call.
func (t *tree) doNames(j job) {
	dir, p := j.dir, j.names
	at := min(p.before, len(dir.order))
	out := listed{dir: Path(dir.path), number: p.number}
	if t.known != nil {
		out.places = make([]int32, 0, countDirents(p.buf[:p.size]))
	}
	var files, names, bytes int64
	var batch []found
	var st unix.Stat_t
	for rest := p.buf[:p.size]; len(rest) > 0; {
		var name []byte
		if name, rest = nextDirent(rest); name == nil {
			continue
		}
		place := t.place(dir, name, &at)
		old := t.at(place)
		var text string
		if old != nil {
			text = string(old.Path[len(old.Path)-len(name):])
		} else {
			text = string(name)
		}
		if err := unix.Fstatat(int(dir.src), text, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if !vanished(err) {
				t.hide(dir, err) // a folder that may be listed but not searched
			}
			continue
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT == unix.S_IFREG {
			t.linked.Store(true)
		}
		if old != nil && old.is(&st) && (dir.path != "" || !isStageName(text)) {
			t.same[place] = true
			files, names, bytes = files+1, names+int64(len(old.Path)), bytes+st.Size
			out.places = append(out.places, place)
			continue
		}
		f := found{name: text, place: place, stat: st}
		out.add(dir, &f)
		if t.sort(dir, &f) {
			batch = append(batch, f)
		}
		if len(batch) == fileBatch {
			t.push(job{dir: dir, files: batch})
			batch = nil
		}
	}
	listBuffers.Put(p.buf)
	if batch != nil {
		t.push(job{dir: dir, files: batch})
	}
	if t.countNames(files, names) && t.count(bytes) == nil && t.known != nil {
		t.mu.Lock()
		t.parts = append(t.parts, out)
		t.mu.Unlock()
	}
}

// is reports whether a file is still the one that was known.
func (e *Entry) is(st *unix.Stat_t) bool {
	return e.Type == TypeFile && st.Mode&unix.S_IFMT == unix.S_IFREG && uint32(st.Mode)&0o777 == e.Mode && e.sig.proves(signatureOf(st))
}

// place is where a name of a folder is in what is known; unplaced if it is new. At is where
// in the order of the last time it is expected.
func (t *tree) place(dir *folder, name []byte, at *int) int32 {
	if t.known == nil {
		return unplaced
	}
	from := len(dir.path) + 1
	if dir.path == "" {
		from = 0
	}
	for k := *at; k < min(*at+ahead, len(dir.order)); k++ {
		if i := dir.order[k]; string(t.known.Entries[i].Path[from:]) == string(name) {
			*at = k + 1
			return i
		}
	}
	return t.known.place(Path(dir.child(string(name))))
}
