package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/event"
)

func TestBlobsComeBackAndAreStoredOnce(t *testing.T) {
	o := options(t)
	w := create(t, o)
	for _, content := range []string{"", "x", "line\nline\x00", "x", strings.Repeat("long", 1<<18)} {
		id, err := w.PutBlob([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.GetBlob(id)
		if err != nil || string(got) != content {
			t.Errorf("%d bytes back, want %d: %v", len(got), len(content), err)
		}
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(o.Dir, blobFolder))
	if err != nil || len(entries) != 4 {
		t.Errorf("%d files for 4 contents: %v", len(entries), err)
	}
	if _, err := w.PutBlob(make([]byte, MaxBlob+1)); err == nil {
		t.Error("a blob over the limit was stored")
	}
}

func TestManyBlobsBecomeDurableTogether(t *testing.T) {
	w := create(t, options(t))
	for i := range 3 * manyFiles {
		if _, err := w.PutBlob(fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	if len(w.commit.files) != 0 || w.commit.durable != w.commit.written {
		t.Errorf("%d files still to sync, %d of %d durable", len(w.commit.files), w.commit.durable, w.commit.written)
	}
}

func TestBlobIDsThatAreNoHashAreRefused(t *testing.T) {
	o := options(t)
	w := create(t, o)
	rewrite(t, filepath.Join(o.Dir, "outside"), []byte("x"))
	hex64 := strings.Repeat("ab", 32)
	for _, id := range []string{
		"", "sha256:", hex64, "sha256:" + hex64[:10], "sha256:../outside", "sha256:" + strings.Repeat("../", 21) + "x",
		"sha256:" + strings.ToUpper(hex64), "sha512:" + hex64, "sha256:" + hex64 + "/..", "sha256:" + hex64 + "\x00",
	} {
		if _, err := w.GetBlob(id); err == nil || !strings.Contains(err.Error(), "blob id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := w.GetBlob("sha256:" + hex64); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("missing blob: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || os.IsNotExist(err) {
			return err
		}
		err = u.Unwrap()
	}
}

func TestDamagedBlobIsRefusedAndReplaced(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	id, err := w.PutBlob([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := blobPath(o.Dir, id)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, nil) // as a crash before the sync may leave it
	if _, err := w.GetBlob(id); !isCorrupt(err) {
		t.Errorf("an empty blob was read as content: %v", err)
	}
	closeWriter(t, w)
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeWriter(t, again)
	if _, err := again.PutBlob([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if got, err := again.GetBlob(id); err != nil || !bytes.Equal(got, []byte("content")) {
		t.Errorf("not replaced: %q, %v", got, err)
	}
}

// TestABlobThatCannotBeStoredEndsTheWriting: a run must neither end nor continue while a
// part of its journal is missing.
func TestABlobThatCannotBeStoredEndsTheWriting(t *testing.T) {
	o := options(t)
	full := true
	o.Sync = volatile
	o.Write = func(f *os.File, b []byte) (int, error) {
		if full && strings.HasPrefix(filepath.Base(f.Name()), blobTemp) {
			n, _ := f.Write(b[:len(b)/2])
			return n, syscall.ENOSPC
		}
		return f.Write(b)
	}
	w := create(t, o)
	appendText(t, w, "before")
	if _, err := w.PutBlob(make([]byte, MaxBlob+1)); err == nil {
		t.Error("a blob above the limit is stored")
	}
	appendText(t, w, "a blob that is refused is an error of this blob alone")
	if _, err := w.PutBlob([]byte("output")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	full = false
	if _, err := w.Append(event.Event{Data: event.TextEnd{Text: "after"}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an event is written: %v", err)
	}
	if err := w.Sync(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("synced: %v", err)
	}
	_ = w.Close()
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if seq, _ := again.Head(); seq != 2 {
		t.Errorf("%d events", seq)
	}
	if _, err := again.PutBlob([]byte("output")); err != nil {
		t.Error(err)
	}
	closeWriter(t, again)
}
