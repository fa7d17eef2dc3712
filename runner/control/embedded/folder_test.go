package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

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
	third := start(t, state) // the lock of a process that has ended is free
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
		if text, err := os.ReadFile(control(state, lockFile)); err != nil || len(text) > 0 {
			t.Errorf("a lock that was released says %q, %v", text, err)
		}
	}
}

// TestTheHolderIsTheOneThatLocks has a lock whose file names another process.
func TestTheHolderIsTheOneThatLocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who holds a lock")
	}
	state := stateDir(t)
	f, err := openFolder(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	defer f.release() //nolint:errcheck // of a test
	if err := os.WriteFile(control(state, lockFile), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := holder(control(state, lockFile)); got != os.Getpid() {
		t.Errorf("got %d, want %d", got, os.Getpid())
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
	elsewhere, somebody := t.TempDir(), os.Geteuid()+1
	for name, c := range map[string]struct {
		damage damage
		below  string
		want   string
	}{
		"a file":              {replace(controlDir, "x"), "", "not a directory"},
		"a link to elsewhere": {func(dir string) error { return os.Symlink(elsewhere, filepath.Join(dir, controlDir)) }, "", "is no folder"},
		"another's": {func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, controlDir), 0o700), os.Chown(filepath.Join(dir, controlDir), somebody, -1))
		}, "", fmt.Sprint("belongs to uid ", somebody)},
		"a path too long for a socket": {remove("x"), strings.Repeat("x", 100), "the system takes"},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateDir(t)
			if err := c.damage(state); errors.Is(err, os.ErrPermission) {
				t.Skip("needs root to give a folder away")
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := openFolder(t.Context(), filepath.Join(state, c.below)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestDamagedStateIsTold damages the folder of a killed server. It expects an
// error with the next step, from a process that ends in order.
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
	half, page := used(t, filepath.Join(state, database))
	firstLog := filepath.Join(member, "wal", filepath.Base(theLog(t, filepath.Join(state, member))))
	const nothing = "starts, with nothing in it"
	noise := strings.Repeat("noise", 10000)
	in := func(name string) string { return filepath.Join(controlDir, name) }
	for name, c := range map[string]struct {
		damage damage
		want   string // "": a start with everything in place
	}{
		"a database cut in half":                {cut(database, half), "open the database"},
		"a database of a page":                  {cut(database, 4096), "open the database"},
		"an empty database":                     {cut(database, 0), "the database is an empty file"},
		"a database of noise":                   {replace(database, noise), "open the database"},
		"no log":                                {remove(filepath.Join(member, "wal")), "the write-ahead log is missing"},
		"a page of noise":                       {overwrite(database, page), "the database is damaged"},
		"a log of noise":                        {replace(firstLog, noise), "open the database"},
		"a log cut short":                       {cut(firstLog, 100), "the write-ahead log is missing or empty"},
		"an empty log":                          {cut(firstLog, 0), "open the database"},
		"a log that lacks its last writes":      {cut(firstLog, 4096), "the write-ahead log ends at entry"},
		"a first start, no log yet":             {both(cut(database, 0), remove(filepath.Join(member, "wal"))), nothing},
		"a first start, a log without an entry": {both(remove(database), cut(firstLog, 100)), nothing},
		"tokens of noise":                       {replace(in(tokensFile), noise), "is damaged"},
		"a kubeconfig of noise":                 {replace(in(kubeconfigFile), "{{{"), ""},
		"a port of noise":                       {replace(in(portFile), noise), ""},
		"a certificate of noise":                {replace(in("ca.crt"), noise), ""},
		"a key of noise":                        {replace(in("serving.key"), noise), ""},
		"a folder for a socket":                 {replace(filepath.Join(in(clientSocket), "x"), noise), "open the database"},
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
			if err := c.damage(copied); err != nil {
				t.Fatal(err)
			}
			p, ready := launch(t, copied)
			switch {
			case c.want == "" && !ready:
				t.Errorf("did not start:\n%s", p.stderr)
			case c.want == nothing:
				if list, err := client(t, p).List(t.Context(), listOne); err != nil || len(list.Items) > 0 {
					t.Errorf("got %v, %v\n%s", list, err, p.stderr)
				}
				p.stop(t)
			case c.want == "":
				if _, err := client(t, p).Get(t.Context(), "r", getIt); err != nil {
					t.Errorf("the object is gone: %v", err)
				}
				p.stop(t)
			default:
				if ready {
					p.kill(t) // it would go on for ever
				}
				err := p.cmd.Wait()
				text := p.stderr.String()
				if ready || err == nil || !strings.Contains(text, "refused: ") || !strings.Contains(text, c.want) || strings.Contains(text, "goroutine ") {
					t.Errorf("ready %v, want %q in\n%s", ready, c.want, text)
				}
			}
		})
	}
}

// TestDamageWhileItRunsIsReportedByTheNextStart damages all pages of a database that
// is open. The database then ends the process, and the next start reports the damage.
func TestDamageWhileItRunsIsReportedByTheNextStart(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	p := start(t, state)
	c := client(t, p)
	if _, err := c.Apply(t.Context(), "r", runNamed("r"), applyAs); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(controlDir, etcdDir, "member", "snap", "db")
	info, err := os.Stat(filepath.Join(state, database))
	if err != nil {
		t.Fatal(err)
	}
	page := int64(os.Getpagesize())
	for at := 2 * page; at < info.Size(); at += page { // the first two say where the others are
		if err := overwrite(database, at)(state); err != nil {
			t.Fatal(err)
		}
	}
	late := time.Now().Add(patient)
	for n := 0; ; n++ {
		if _, err := c.Apply(t.Context(), fmt.Sprint("r", n), runNamed("r"), applyAs); err != nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("it goes on with a damaged database:\n%s", p.stderr)
		}
	}
	if err := p.cmd.Wait(); err == nil {
		t.Errorf("it ended as if nothing had happened:\n%s", p.stderr)
	}
	next, ready := launch(t, state)
	if ready {
		next.kill(t)
		t.Fatalf("it starts with a damaged database:\n%s", next.stderr)
	}
	err = next.cmd.Wait()
	text := next.stderr.String()
	if err == nil || !strings.Contains(text, "refused: ") || !strings.Contains(text, "the database is damaged") || strings.Contains(text, "goroutine ") {
		t.Errorf("the next start reports:\n%s", text)
	}
}

// used returns where half of what a database uses ends, and where a page with
// data begins: the contents of a free page do not matter.
func used(t *testing.T, path string) (half, page int64) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	size := int64(db.Info().PageSize)
	err = db.View(func(tx *bbolt.Tx) error {
		half = tx.Size() / 2
		for id := 2; ; id++ { // 0 and 1 are the meta pages
			info, err := tx.Page(id)
			if err != nil || info == nil {
				return errors.Join(errors.New("no page holds data"), err)
			}
			if info.Type == "leaf" && info.Count > 0 {
				page = int64(id) * size
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return half, page
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
	if err := replace("", text)(path); err != nil {
		t.Fatal(err)
	}
}

// damage does something to a file below a folder.
type damage func(dir string) error

func replace(name, text string) damage {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
}

func cut(name string, size int64) damage {
	return func(dir string) error { return os.Truncate(filepath.Join(dir, name), size) }
}

// overwrite damages a page of a file.
func overwrite(name string, at int64) damage {
	return func(state string) error {
		f, err := os.OpenFile(filepath.Join(state, name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(bytes.Repeat([]byte("noise..."), 512), at)
		return errors.Join(err, f.Close())
	}
}

func both(one, two damage) damage {
	return func(dir string) error { return errors.Join(one(dir), two(dir)) }
}

func remove(name string) damage {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}
