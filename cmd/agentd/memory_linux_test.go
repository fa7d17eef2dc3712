package main

import (
	"bytes"
	"fmt"
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
	if flags := mapping(t, path, "VmFlags:"); !bytes.Contains(append(flags, ' '), []byte(" nh ")) && hugePages() {
		t.Errorf("what comes back may come in huge pages: %s", flags)
	}
}

// hugePages reports whether the system knows huge pages.
func hugePages() bool {
	_, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil
}

// mapping is what the system says of a mapped file in the line that begins with the key.
func mapping(t *testing.T, path, key string) []byte {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := bytes.Cut(text, []byte(" "+path+"\n"))
	_, after, listed := bytes.Cut(after, []byte("\n"+key))
	if !found || !listed {
		t.Fatal("the mapping is not listed")
	}
	line, _, _ := bytes.Cut(after, []byte("\n"))
	return line
}

// resident is how much of a mapped file is in this process, in KB.
func resident(t *testing.T, path string) (kb int) {
	t.Helper()
	line := string(mapping(t, path, "Rss:"))
	if _, err := fmt.Sscanf(line, "%d", &kb); err != nil {
		t.Fatal(line, err)
	}
	return kb
}
