package files

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestProcessesThatEditOneFileLoseNoEdit has two sets of the tools, as two processes have
// them, count in lines of their own of one file. An edit is refused or it stays.
func TestProcessesThatEditOneFileLoseNoEdit(t *testing.T) {
	const times = 150
	here := newDesk(t, map[string]string{"f": "a=0\nb=0\n"})
	there := newDesk(t, nil)
	there.dir = here.dir
	refused := make([]int, 2)
	var wg sync.WaitGroup
	for i, d := range []*desk{here, there} {
		line := []string{"a", "b"}[i]
		wg.Go(func() {
			for n := 0; n < times; {
				if r := d.call(context.Background(), "read", args{"path": "f"}); r.IsError {
					t.Errorf("read: %s", r.Text)
					return
				}
				r := d.call(context.Background(), "edit", args{"path": "f", "oldString": fmt.Sprintf("%s=%d\n", line, n), "newString": fmt.Sprintf("%s=%d\n", line, n+1)})
				switch {
				case !r.IsError:
					n++
				case strings.Contains(r.Text, "changed"):
					refused[i]++
				default:
					t.Errorf("edit: %s", r.Text)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := here.get("f"), fmt.Sprintf("a=%d\nb=%d\n", times, times); got != want {
		t.Errorf("%q, want %q: an edit was lost", got, want)
	}
	t.Logf("refused %v", refused)
}

// TestAFileThatIsReplacedWhileItIsReadHasChanged: the edit says so, not that it was never
// read.
func TestAFileThatIsReplacedWhileItIsReadHasChanged(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\n", "g": "b\n"})
	s := &set{seen: newSeen(), locks: newLocks()}
	for _, tool := range s.tools() {
		d.tools[tool.Name()] = tool
	}
	f, err := os.Open(filepath.Join(d.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Rename(filepath.Join(d.dir, "g"), filepath.Join(d.dir, "f")); err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	sum.Write([]byte("a\n"))
	s.remember(d.run, f, sum)
	if text := d.refused("edit", args{"path": "f", "oldString": "b", "newString": "c"}); !strings.Contains(text, "has changed since it was read") {
		t.Error(text)
	}
}

// TestALockedFolderFailsTheCall: a program that keeps the lock cannot make a call wait.
func TestALockedFolderFailsTheCall(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "a\n"})
	f, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	d.ok("read", args{"path": "f"})
	if text := d.refused("edit", args{"path": "f", "oldString": "a", "newString": "b"}); !strings.Contains(text, "locked by another process") {
		t.Error(text)
	}
	if got := d.get("f"); got != "a\n" {
		t.Errorf("%q", got)
	}
}
