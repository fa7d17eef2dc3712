package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// newDatabase makes a database with nested buckets, branches and long values.
func newDatabase(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // so that pages are freed and used again
		err = db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"key", "small", "meta"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				n := 3000
				if name != "key" {
					n = 3
				}
				for i := range n {
					if err := b.Put(fmt.Appendf(nil, "%s-%06d", name, i*7%n), []byte(strings.Repeat("v", 20+i*round%90))); err != nil {
						return err
					}
				}
				if err := b.Put([]byte("long"), make([]byte, 20000)); err != nil {
					return err
				}
				in, err := b.CreateBucketIfNotExists([]byte("nested"))
				if err != nil {
					return err
				}
				if err := in.Put([]byte("a"), []byte("b")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDamagedPagesAreFound damages each page in turn. What is not found does no
// harm: the database can be opened, all of it read, and written.
func TestDamagedPagesAreFound(t *testing.T) {
	path := newDatabase(t)
	if err := checkPages(path); err != nil {
		t.Fatalf("a whole database: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	found, pages := 0, len(whole)/size
	for n := range pages {
		for name, with := range map[string]byte{"zeros": 0, "ones": 0xff, "text": 'x'} {
			text := append([]byte(nil), whole...)
			for i := n * size; i < (n+1)*size; i++ {
				text[i] = with
			}
			bad := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(bad, text, 0o600); err != nil {
				t.Fatal(err)
			}
			err := checkPages(bad)
			if err != nil && !errors.Is(err, errPage) {
				t.Errorf("page %d of %s: %v", n, name, err)
			}
			if err != nil {
				found++
				continue
			}
			if err := usable(bad); err != nil {
				t.Errorf("page %d of %s was not found: %v", n, name, err)
			}
		}
	}
	if found < pages {
		t.Errorf("%d of %d pages were found damaged, in three ways", found, pages)
	}
}

// usable opens a database, reads all of it, and writes.
func usable(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // of a test
	return db.Update(func(tx *bbolt.Tx) error {
		err := tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("key")).Put([]byte("new"), []byte("value"))
	})
}

func FuzzDamagedPages(f *testing.F) {
	path := newDatabase(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), byte(0))
	f.Add(uint32(4096*3+8), byte(9))
	f.Add(uint32(4096*5+12), byte(0xff))
	f.Fuzz(func(t *testing.T, at uint32, with byte) {
		text := append([]byte(nil), whole...)
		text[int(at)%len(text)] = with
		bad := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(bad, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkPages(bad); err != nil && !errors.Is(err, errPage) {
			t.Error(err)
		}
	})
}
