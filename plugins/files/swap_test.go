package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

// swaps is how often a link is put in place of a file or a folder and back.
const swaps = 3000

// TestALinkSwappedDuringACallLeadsNowhere turns a folder into a link to the
// outside and back while every tool works on a file in it.
func TestALinkSwappedDuringACallLeadsNowhere(t *testing.T) {
	d := newDesk(t, map[string]string{"dir/f": "inside\n", "g": "inside\n", ".git/hook": "hook\n"})
	out := t.TempDir()
	for _, n := range []string{"f", "g"} {
		if err := os.WriteFile(filepath.Join(out, n), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// swap puts each of two names in the place of the other, at once: at no time
	// is one of them missing.
	swap := func(a, b string) {
		if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(d.dir, a), unix.AT_FDCWD, filepath.Join(d.dir, b), unix.RENAME_EXCHANGE); err != nil {
			t.Error(err)
		}
	}
	var stop atomic.Bool
	var done, refused atomic.Int64
	var swapper, callers sync.WaitGroup
	d.link(out, "evil")
	d.link(".git", "evilgit")
	d.link(filepath.Join(out, "g"), "evilfile")
	swapper.Go(func() {
		defer stop.Store(true)
		for i := range swaps {
			link := []string{"evil", "evilgit"}[i%2]
			swap("dir", link)
			swap("g", "evilfile")
			swap("dir", link)
			swap("g", "evilfile")
		}
	})
	for _, c := range []struct {
		tool string
		in   args
	}{
		{"read", args{"path": "dir/f"}},
		{"read", args{"path": "g"}},
		{"grep", args{"pattern": "secret", "path": "dir"}},
		{"grep", args{"pattern": "secret|hook"}},
		{"glob", args{"pattern": "dir/**"}},
		{"list", args{"path": "dir"}},
		{"edit", args{"path": "dir/f", "oldString": "i", "newString": "I", "replaceAll": true}},
		{"write", args{"path": "dir/new/x", "content": "y"}},
		{"write", args{"path": "dir/f", "content": "overwritten\n"}},
		{"write", args{"path": "dir/hook", "content": "overwritten\n"}},
		{"edit", args{"path": "g", "oldString": "e", "newString": "i"}},
		{"patch", args{"patch": patchOf("*** Update File: dir/f", "@@", "-secret", "+seen")}},
		{"patch", args{"patch": patchOf("*** Update File: dir/f", "@@", "-inside", "+patched")}},
		{"patch", args{"patch": patchOf("*** Update File: g", "@@", "-secret", "+seen")}},
		{"patch", args{"patch": patchOf("*** Add File: dir/added", "+x")}},
		{"patch", args{"patch": patchOf("*** Update File: dir/added", "*** Move to: dir/moved")}},
		{"patch", args{"patch": patchOf("*** Delete File: dir/moved")}},
	} {
		callers.Go(func() {
			for !stop.Load() {
				res := d.call(t.Context(), c.tool, c.in)
				if res.IsError {
					refused.Add(1)
				} else {
					done.Add(1)
				}
				if strings.Contains(res.Text, "secret\n") || c.tool == "grep" && strings.Contains(res.Text, ":secret") {
					t.Errorf("%s %v shows %q", c.tool, c.in, res.Text)
					return
				}
				if data, ok := res.Metadata.(fileData); ok && strings.Contains(data.Diff, "secret") {
					t.Errorf("%s %v: the diff shows the secret", c.tool, c.in)
					return
				}
			}
		})
	}
	swapper.Wait()
	callers.Wait()
	if done.Load() < 100 || refused.Load() < 100 {
		t.Errorf("the race was not run: %d calls done, %d refused", done.Load(), refused.Load())
	}
	for _, n := range []string{"f", "g"} {
		if b, err := os.ReadFile(filepath.Join(out, n)); err != nil || string(b) != "secret\n" {
			t.Errorf("%s outside is now %q, %v", n, b, err)
		}
	}
	if names, err := os.ReadDir(out); err != nil || len(names) != 2 {
		t.Errorf("outside there are now %v", names)
	}
	if got := d.get(".git/hook"); got != "hook\n" {
		t.Errorf("git's file is now %q", got)
	}
}

func TestLocksAreForgottenAndEndWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		unlock, err := l.acquire(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.acquire(t.Context(), "g") // another file does not wait
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		got := false
		wg.Go(func() {
			second, err := l.acquire(t.Context(), "f")
			if err != nil {
				t.Error(err)
				return
			}
			got = true
			second()
		})
		synctest.Wait()
		if got {
			t.Error("two hold one file")
		}
		unlock()
		other()
		wg.Wait()
		if !got || len(l.files) != 0 {
			t.Errorf("got %v, %d locks are kept", got, len(l.files))
		}
	})
}

func TestSeenForgetsTheOldest(t *testing.T) {
	s := newSeen()
	for i := range maxSeen + 10 {
		s.put("r", string(rune(i+0x10000)), digest{1})
	}
	if len(s.files) != maxSeen || len(s.order) != maxSeen {
		t.Errorf("%d files are kept", len(s.files))
	}
	if _, ok := s.get("r", string(rune(0x10000))); ok {
		t.Error("the oldest is still known")
	}
}
