package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/message"
)

// watchOpens reports the opens of some files until the function it returns is called.
func watchOpens(t *testing.T, files ...string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, f := range files {
		if _, err := unix.InotifyAddWatch(fd, f, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 4096))
		return err == nil && n > 0
	}
}

// A FIFO without a writer keeps its reader waiting, and to open a device can have
// an effect. A call that names them is decided without opening them.
func TestADecisionOpensNothingButFolders(t *testing.T) {
	for name, text := range ways {
		t.Run(name, func(t *testing.T) {
			e := engine(t, text)
			root, outside := e.context.Workspace.Root, t.TempDir()
			put(t, root, ".env", "d/a.go")
			pipes := []string{root + "/p", root + "/d/q", outside + "/r", root + "/bare/index"}
			put(t, root, "bare/HEAD", "bare/refs", "bare/objects")
			for _, p := range pipes {
				if err := unix.Mkfifo(p, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range map[string]string{"out": outside, "to": outside + "/r", "zero": "/dev/zero", ".git": "d/q"} {
				if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			seen := watchOpens(t, append(pipes, "/dev/zero", "/dev/full", outside)...)
			for _, script := range []string{
				"cat p/*", "cat */x", "ls d/q/* p/*/x", "grep -r x p", "grep -r x .", "cat to/*", "cat zero/*", "ls /dev/zero/* /dev/full/*",
				"ls " + outside + "/r/* " + outside + "/*", "cat out/*", "rm -r p", "git log -p", "git -C bare log -p", "git --git-dir=bare show", "mytool p", "cat < p",
			} {
				decide(t, e, bash(script))
			}
			for _, tool := range []string{"read", "grep", "glob", "list"} {
				for _, path := range []string{"p", "out", "zero", "/dev/full"} {
					decide(t, e, call(tool, map[string]any{"path": path, "pattern": "x"}))
				}
			}
			if _, err := e.Unreadable(t.Context(), call("grep", map[string]any{"pattern": "x"}), []string{"p", "zero", "to"}); err != nil {
				t.Error(err)
			}
			if seen() {
				t.Error("a file of the host was opened to judge a call")
			}
		})
	}
}

func TestWhatIsNotListedIsUnknown(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, ".env", "s/.env")
	for name, text := range ways {
		e := engine(t, text)
		root := e.context.Workspace.Root
		put(t, root, "a.go", "in/.env")
		if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
			t.Fatal(err)
		}
		for script, want := range map[string]message.Action{
			"cat " + outside + "/.e*": message.Ask, "cat out/.e*": message.Ask, "cat out/s/*": message.Ask, "grep -r x " + outside: message.Ask, "grep -r x out/": message.Ask,
			"cat */.env": message.Deny, "cat a*": message.Allow, "cat /dev/pts/*": message.Ask, "ls nothing/*": message.Allow,
		} {
			if d := decide(t, e, bash(script)); d.Action != want {
				t.Errorf("%s: %s: got %s by %s (%s), want %s", name, strings.ReplaceAll(script, outside, "OUTSIDE"), d.Action, d.Rule, d.Message, want)
			}
		}
	}
}

func TestALinkThatTakesTheFoldersPlaceIsNotFollowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	put(t, root, "d/a")
	put(t, outside, "b")
	if err := os.Symlink(outside, root+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"link", "d/../link", "../" + filepath.Base(outside), "d/a"} {
		for _, same := range []bool{true, false} {
			if f, err := openBeneath(root, rel, same); err == nil {
				f.Close()
				t.Errorf("%s was opened", rel)
			}
		}
	}
	if in := (Workspace{Root: root}).list("/usr", 1000); in.outside || !in.whole || len(in.list) == 0 {
		t.Errorf("/usr: %+v", in)
	}
	f, err := openBeneath(root, "d", false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f, err := openBeneath("/", "proc", true); err == nil {
		f.Close()
		t.Error("a mount point was crossed")
	}
}
