package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// What needs namespaces is tested from outside, in runner/sandbox.

func TestPlacesAreNeverMadeThroughLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, link := range []struct{ to, at string }{{outside, "absolute"}, {"../../../../../../../.." + outside, "relative"}, {".", "here"}} {
		if err := os.Symlink(link.to, filepath.Join(dir, link.at)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.close()
	for _, name := range []string{"/absolute/x", "/relative/x", "/here/x", "/../x", "/a/../../x"} {
		if fd, err := root.place(name, true); err == nil {
			_ = unix.Close(fd)
			t.Errorf("%s was made", name)
		}
		if fd, err := root.open(name); err == nil {
			_ = unix.Close(fd)
			t.Errorf("%s was opened", name)
		}
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 0 {
		t.Errorf("outside: %v, %v", list, err)
	}
	for name, dir := range map[string]bool{"/a/b/c": true, "/a/file": false} {
		for range 2 { // the second finds what the first made
			fd, err := root.place(name, dir)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil || (st.Mode&unix.S_IFMT == unix.S_IFDIR) != dir {
				t.Errorf("%s: mode %o, %v", name, st.Mode, err)
			}
			_ = unix.Close(fd)
		}
	}
	if _, err := root.place("/a/file/below", false); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

func TestEtcNamesTheUserInside(t *testing.T) {
	b := &spec.Boot{UID: 1000, GID: 100, Profile: spec.Profile{Home: "/home/jane"}}
	files := etcFiles(b)
	if !strings.HasPrefix(files["passwd"], "agent:x:1000:100:agent:/home/jane:/bin/sh\nroot:x:0:0:") || !strings.HasPrefix(files["group"], "agent:x:100:\n") {
		t.Errorf("passwd %q, group %q", files["passwd"], files["group"])
	}
	files = etcFiles(&spec.Boot{})
	if !strings.HasPrefix(files["passwd"], "root:x:0:0:root:/tmp:/bin/sh\nnobody") || !strings.HasPrefix(files["group"], "root:x:0:\nnogroup") {
		t.Errorf("passwd %q, group %q", files["passwd"], files["group"])
	}
	if strings.Contains(files["resolv.conf"], "nameserver") {
		t.Errorf("resolv.conf = %q", files["resolv.conf"])
	}
	host, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Skip("this machine has no /etc/hosts")
	}
	if got := etcFiles(&spec.Boot{Profile: spec.Profile{Network: spec.NetworkHost}})["hosts"]; got != string(host) {
		t.Errorf("hosts = %q, want the host's", got)
	}
}

func TestWhatIsNotEnforcedIsNamed(t *testing.T) {
	b := &spec.Boot{Profile: spec.Profile{Limits: spec.Limits{Memory: 1 << 30, CPU: 500, Pids: 10}}}
	got := unenforced(b)
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "cpu: ") }) || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "memory: ") }) {
		t.Errorf("unenforced = %q", got)
	}
	if none := unenforced(&spec.Boot{}); none != nil {
		t.Errorf("unenforced = %q, although nothing was declared", none)
	}
}

func TestParseStatReadsNamesWithParentheses(t *testing.T) {
	q, ok := parseStat([]byte("7 (a) b) R 3) Z 5 6 7 8"))
	if !ok || q.state != 'Z' || q.parent != 5 {
		t.Errorf("parsed %+v, %v", q, ok)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S", "1 (x) S y", "1 (x) Sleeping 2"} {
		if q, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: parsed %+v", bad, q)
		}
	}
}

func TestErrorsCarryTheKernelsNumber(t *testing.T) {
	if got := errnoOf(errors.Join(errors.New("x"), unix.EPERM)); got != int(unix.EPERM) {
		t.Errorf("errno = %d", got)
	}
	if got := errnoOf(errors.New("x")); got != 0 {
		t.Errorf("errno = %d", got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1"))
	f.Add([]byte("7 (a) b) R 3) Z 5 6 7 8"))
	f.Add([]byte(")\x00 0 1 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, ok := parseStat(b); ok && q.state == 0 {
			t.Errorf("%q: no state", b)
		}
	})
}
