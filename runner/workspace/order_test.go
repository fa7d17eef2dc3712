package workspace

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// visible is what a snapshot says of the files: all but what proves them unchanged.
func visible(s *Snapshot) []string {
	lines := []string{fmt.Sprintf("%d files, %d bytes, hidden %v", s.Files, s.Bytes, s.Hidden)}
	for _, e := range s.Entries {
		lines = append(lines, fmt.Sprintf("%s %s %o %d %s %s", e.Path, e.Type, e.Mode, e.Size, e.Hash, e.Target))
	}
	return lines
}

// fresh is a look that knows nothing.
func fresh(t *testing.T, w *Workspace) *Snapshot {
	t.Helper()
	walk := tree{ctx: t.Context(), filter: w.filter, notes: silence{}, sizeLimit: 1 << 62, maxFiles: w.spec.MaxListed, root: w.dir, base: w.base}
	s, err := walk.walk(nil)
	must(t, err)
	return s
}

// TestALookFindsWhatAFreshOneFinds changes a tree at random, and compares each look, which
// relies on the one before it, with one that reads everything. A large tree is watched.
func TestALookFindsWhatAFreshOneFinds(t *testing.T) {
	for name, more := range map[string]int{"a small tree": 0, "a large tree": minWatched} {
		t.Run(name, func(t *testing.T) {
			tree := files{}
			for i := range 1_500 { // a folder that is listed in several parts
				tree[fmt.Sprintf("flat/a name of some length, so that there are many parts %04d", i)] = fmt.Sprint(i)
			}
			for i := range 60 {
				tree[fmt.Sprintf("d%d/e%d/f%d", i%3, i%5, i)] = fmt.Sprint(i)
			}
			for i := range more {
				tree[fmt.Sprintf("large/g%d/f%d", i%20, i)] = fmt.Sprint(i)
			}
			tree["d1.x/f"], tree["skipped/f"] = "x", "x"
			w, _ := setup(t, tree, func(s *Spec) { s.Exclude = []string{"skipped", "*.log"} })
			ready(t, w)
			m := meddler{t: t, w: w, rnd: rand.New(rand.NewPCG(7, 7))} //nolint:gosec // it is to be repeated
			touched := 0
			for round := range 60 {
				if w.watch != nil {
					touched++
				}
				for range m.rnd.IntN(6) {
					m.meddle(round)
				}
				now, err := w.look(t.Context())
				must(t, err)
				if diff := cmp.Diff(visible(fresh(t, w)), visible(now)); diff != "" {
					t.Fatalf("round %d (-fresh +look):\n%s", round, diff)
				}
				if len(now.Entries) < 100+more/2 {
					t.Fatalf("round %d: the tree is almost gone", round)
				}
			}
			if more == 0 && touched > 0 || more > 0 && touched < 20 && watchable(t) {
				t.Errorf("%d looks began with a watch", touched)
			}
		})
	}
}

// meddler does to a tree what programs do.
type meddler struct {
	t   *testing.T
	w   *Workspace
	rnd *rand.Rand
}

func (m *meddler) at(name string) string { return filepath.Join(m.w.Dir(), name) }

func (m *meddler) pick() string {
	for {
		e := &m.w.last.Entries[m.rnd.IntN(len(m.w.last.Entries))]
		if e.Path != "large" && e.Path != "flat" {
			return e.path(m.w)
		}
	}
}

func (m *meddler) meddle(round int) {
	name := m.at(fmt.Sprintf("d%d/e%d/new%d", m.rnd.IntN(3), m.rnd.IntN(5), m.rnd.IntN(40)))
	switch m.rnd.IntN(11) {
	case 0:
		_ = os.MkdirAll(filepath.Dir(name), 0o755) // it may be a file by now
		_ = os.WriteFile(name, []byte(fmt.Sprint(round)), 0o644)
	case 1:
		_ = os.RemoveAll(m.pick())
	case 2: // the same size, and the times of before
		p := m.pick()
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			_ = os.WriteFile(p, []byte(strings.Repeat("z", int(st.Size))), 0o644)
			must(m.t, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{st.Atim, st.Mtim}, 0))
		}
	case 3:
		_ = os.Chmod(m.pick(), 0o755)
	case 4:
		p := m.pick()
		_ = os.RemoveAll(p)
		_ = os.Symlink(fmt.Sprint("to", round), p)
	case 5:
		p := m.pick()
		_ = os.RemoveAll(p)
		_ = os.Mkdir(p, 0o700)
	case 6:
		_ = os.Rename(m.pick(), name)
	case 7:
		_ = os.Rename(m.pick(), m.pick()) // a file in the place of another one
	case 8:
		_ = os.WriteFile(name+".log", nil, 0o644)
	case 9: // folders in new folders
		_ = os.MkdirAll(name+"/a/b", 0o755)
		_ = os.WriteFile(name+"/a/b/c", []byte(fmt.Sprint(round)), 0o644)
	case 10: // the same folder, made anew
		p := filepath.Dir(m.pick())
		if p != m.w.Dir() && filepath.Dir(p) != m.w.Dir() {
			_ = os.RemoveAll(p)
			_ = os.Mkdir(p, 0o755)
			_ = os.WriteFile(p+"/again", []byte(fmt.Sprint(round)), 0o644)
		}
	}
}

func (e *Entry) path(w *Workspace) string { return filepath.Join(w.dir, string(e.Path)) }

// TestAQuietLookKeepsTheOrder checks that a second look finds all files where the first one
// has listed them, and makes nothing new.
func TestAQuietLookKeepsTheOrder(t *testing.T) {
	w, _ := setup(t, files{"a/b/c": "1", "a/b/d": "2", "a.b": "3", "e/f": "4", "link": "->e"})
	ready(t, w)
	settled := func() *Snapshot {
		for range 100 {
			s, err := w.look(t.Context())
			must(t, err)
			again, err := w.look(t.Context())
			must(t, err)
			if &again.Entries[0] == &s.Entries[0] {
				return again
			}
		}
		t.Fatal("files that do not change are never known by their times")
		return nil
	}
	s := settled()
	n := 0
	for _, places := range s.order {
		n += len(places)
	}
	if n != len(s.Entries) {
		t.Errorf("the order has %d of %d entries", n, len(s.Entries))
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "a/b/new"), nil, 0o644))
	must(t, os.Remove(filepath.Join(w.Dir(), "a.b")))
	now, err := w.look(t.Context())
	must(t, err)
	for dir, places := range now.order {
		for _, i := range places {
			if p := now.Entries[i].Path; filepath.Dir(string(p)) != filepath.Clean("./"+string(dir)) {
				t.Errorf("%s is in the order of %q", p, dir)
			}
		}
	}
}

// BenchmarkFloorOf50000Files lists the folders of BenchmarkStepOf50000Files and looks at each
// file, on as many threads, and does nothing else: no look at all files can be faster.
func BenchmarkFloorOf50000Files(b *testing.B) {
	w, _ := setup(b, fiftyThousand())
	ready(b, w)
	var folders []string
	for _, e := range w.Base().Entries {
		if e.Type == TypeDir {
			folders = append(folders, e.path(w))
		}
	}
	cpu := -processorTime(b)
	for b.Loop() {
		next, done := make(chan string, len(folders)), sync.WaitGroup{}
		for _, f := range folders {
			next <- f
		}
		close(next)
		for range 2 {
			done.Go(func() {
				for f := range next {
					floor(b, f)
				}
			})
		}
		done.Wait()
	}
	b.ReportMetric((cpu+processorTime(b)).Seconds()*1000/float64(b.N), "cpu-ms/step")
}

func floor(tb testing.TB, folder string) {
	tb.Helper()
	d, err := openAny(folder)
	if err != nil {
		tb.Error(err)
		return
	}
	defer d.close()
	var buf [listBytes]byte
	var st unix.Stat_t
	for {
		n, err := d.list(buf[:])
		if n == 0 || err != nil {
			return
		}
		for rest := buf[:n]; len(rest) > 0; {
			var name []byte
			if name, rest = nextDirent(rest); name != nil && unix.Fstatat(int(d), string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				tb.Error(io.ErrUnexpectedEOF)
			}
		}
	}
}

func fiftyThousand() files {
	tree := files{}
	for i := range 50_000 {
		tree[fmt.Sprintf("pkg%03d/sub%d/file%05d.go", i%200, i%5, i)] = "package x\n"
	}
	return tree
}
