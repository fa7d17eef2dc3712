package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestSecondStartNamesTheFirst(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	p := start(t, state)
	second, ready := launch(t, state)
	_ = second.cmd.Wait()
	want := "process " + strconv.Itoa(p.cmd.Process.Pid) + " runs it"
	if ready || !strings.Contains(second.stderr.String(), want) {
		t.Errorf("ready %v, want %q in\n%s", ready, want, second.stderr)
	}
	if _, err := client(t, p).List(t.Context(), listOne); err != nil {
		t.Errorf("the first suffered: %v", err)
	}
	p.kill(t)
	third := start(t, state) // the lock of a process that is gone is nobody's
	third.stop(t)
}

func TestStaleLockIsTakenOver(t *testing.T) {
	state := stateDir(t)
	if err := os.MkdirAll(control(state, ""), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1\n", "", "not a number", strings.Repeat("9", 100)} {
		if err := os.WriteFile(control(state, lockFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFolder(t.Context(), state)
		if err != nil {
			t.Fatalf("lock file %q: %v", text, err)
		}
		if got := holder(control(state, lockFile)); got != os.Getpid() {
			t.Errorf("the file names %d", got)
		}
		_, err = openFolder(t.Context(), state)
		if held, ok := errors.AsType[*HeldError](err); !ok || held.PID != os.Getpid() {
			t.Errorf("a second one: %v", err)
		}
		if err := f.release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderIsMadePrivate(t *testing.T) {
	state := stateDir(t)
	if err := os.MkdirAll(control(state, ""), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	defer f.release() //nolint:errcheck // of a folder that goes
	info, err := os.Stat(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestUnusableFoldersAreRefused(t *testing.T) {
	root := os.Geteuid() == 0
	for name, c := range map[string]struct {
		make func(t *testing.T, state string) string
		want string
	}{
		"a file": {func(t *testing.T, state string) string {
			write(t, filepath.Join(state, controlDir), "x")
			return state
		}, "not a directory"},
		"a link to elsewhere": {func(t *testing.T, state string) string {
			if err := os.Symlink(t.TempDir(), filepath.Join(state, controlDir)); err != nil {
				t.Fatal(err)
			}
			return state
		}, "is no folder"},
		"another's": {func(t *testing.T, state string) string {
			if !root {
				t.Skip("needs root to give a folder away")
			}
			if err := os.Mkdir(filepath.Join(state, controlDir), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(state, controlDir), 65534, 65534); err != nil {
				t.Fatal(err)
			}
			return state
		}, "belongs to uid 65534"},
		"a path too long for a socket": {func(_ *testing.T, state string) string {
			return filepath.Join(state, strings.Repeat("x", 100))
		}, "the system takes"},
	} {
		t.Run(name, func(t *testing.T) {
			state := c.make(t, stateDir(t))
			if _, err := openFolder(t.Context(), state); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestDamagedStateIsTold damages the folder of a server that was killed, and
// wants an error that says what to do, from a process that ends in order.
func TestDamagedStateIsTold(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	p := start(t, state)
	if _, err := client(t, p).Apply(t.Context(), "r", runNamed("r"), applyAs); err != nil {
		t.Fatal(err)
	}
	p.kill(t)
	member := filepath.Join(controlDir, etcdDir, "member")
	database := filepath.Join(member, "snap", "db")
	for name, c := range map[string]struct {
		damage func(t *testing.T, state string)
		want   string // "" wants a start with everything in place
	}{
		"a database cut in half": {func(t *testing.T, state string) {
			cut(t, filepath.Join(state, database), used(t, filepath.Join(state, database))/2)
		}, "open the database"},
		"a database of a page": {func(t *testing.T, state string) { cut(t, filepath.Join(state, database), 4096) }, "open the database"},
		"an empty database":    {func(t *testing.T, state string) { cut(t, filepath.Join(state, database), 0) }, "open the database"},
		"a database of noise": {func(t *testing.T, state string) {
			write(t, filepath.Join(state, database), strings.Repeat("noise", 10000))
		}, "open the database"},
		"no log": {func(t *testing.T, state string) { remove(t, filepath.Join(state, member, "wal")) }, "the write-ahead log is missing"},
		"a log of noise": {func(t *testing.T, state string) {
			write(t, theLog(t, filepath.Join(state, member)), strings.Repeat("noise", 10000))
		}, "open the database"},
		"a log cut short":        {func(t *testing.T, state string) { cut(t, theLog(t, filepath.Join(state, member)), 100) }, "open the database"},
		"a log of its own begin": {func(t *testing.T, state string) { cut(t, theLog(t, filepath.Join(state, member)), 0) }, "open the database"},
		"tokens of noise":        {func(t *testing.T, state string) { write(t, control(state, tokensFile), "noise") }, "is damaged"},
		"a kubeconfig of noise":  {func(t *testing.T, state string) { write(t, control(state, kubeconfigFile), "{{{") }, ""},
		"a port of noise":        {func(t *testing.T, state string) { write(t, control(state, portFile), "noise") }, ""},
		"certificates of noise": {func(t *testing.T, state string) {
			write(t, control(state, "ca.crt"), "noise")
			write(t, control(state, "serving.key"), "noise")
		}, ""},
		"a socket left behind as a folder": {func(t *testing.T, state string) {
			remove(t, control(state, clientSocket))
			write(t, filepath.Join(control(state, clientSocket), "x"), "")
		}, "open the database"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := stateDir(t)
			if err := os.CopyFS(filepath.Join(copied, controlDir, etcdDir), os.DirFS(control(state, etcdDir))); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{tokensFile, kubeconfigFile, portFile, "ca.crt", "ca.key", "serving.crt", "serving.key"} {
				text, err := os.ReadFile(control(state, f))
				if err != nil {
					t.Fatal(err)
				}
				write(t, control(copied, f), string(text))
			}
			c.damage(t, copied)
			p, ready := launch(t, copied)
			switch {
			case c.want == "" && !ready:
				t.Errorf("did not start:\n%s", p.stderr)
			case c.want == "":
				if _, err := client(t, p).Get(t.Context(), "r", getIt); err != nil {
					t.Errorf("the object is gone: %v", err)
				}
				p.stop(t)
			default:
				err := p.cmd.Wait()
				text := p.stderr.String()
				if ready || err == nil || !strings.Contains(text, "refused: ") || !strings.Contains(text, c.want) || strings.Contains(text, "goroutine ") {
					t.Errorf("ready %v, want %q in\n%s", ready, c.want, text)
				}
			}
		})
	}
}

// used is how many bytes of a database are in use.
func used(t *testing.T, path string) int64 {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := int64(0)
	if err := db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func theLog(t *testing.T, member string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil || len(found) == 0 {
		t.Fatal("no log", err)
	}
	return found[0]
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
