package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPagesOfAMappedFileAreDropped maps a file as the database does.
func TestPagesOfAMappedFileAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	m, err := unix.Mmap(int(f.Fd()), 0, len(text), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	before := resident(t, path)
	if !bytes.Equal(m, text) || resident(t, path) <= before {
		t.Fatal("the pages do not count when they are read")
	}
	giveBackNow()
	if kb := resident(t, path); kb != 0 {
		t.Errorf("%d KB are still there", kb)
	}
	if !bytes.Equal(m, text) {
		t.Error("the mapping has another text now")
	}
}

// resident is how much of a mapped file is in this process, in KB.
func resident(t *testing.T, path string) (kb int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := bytes.Cut(text, []byte(" "+path+"\n"))
	_, after, rss := bytes.Cut(after, []byte("\nRss:"))
	if !found || !rss {
		t.Fatal("the mapping is not listed")
	}
	for _, c := range bytes.TrimLeft(after, " ") {
		if c < '0' || c > '9' {
			break
		}
		kb = kb*10 + int(c-'0')
	}
	return kb
}
