//go:build linux

package container

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestAnOwnerIsGoneOnlyIfThatIsCertain(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Split(self, "-")
	if len(part) != 4 {
		t.Fatalf("this process is %q", self)
	}
	c := exec.Command("sleep", "300")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := owner(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if gone(child) {
		t.Error("a process that lives is gone")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for state := ""; state != "Z"; { // a zombie has ended, too
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		state = strings.Fields(string(stat))[2]
	}
	if !gone(child) {
		t.Error("a zombie lives")
	}
	_ = c.Wait()
	with := func(i int, v string) string {
		p := append([]string{}, part...)
		p[i] = v
		return strings.Join(p, "-")
	}
	for name, c := range map[string]struct {
		owner string
		want  bool
	}{
		"this process":                      {self, false},
		"a child that has ended":            {child, true},
		"of another boot":                   {with(0, "00000000"), true},
		"of another process namespace":      {with(1, "zzzz"), false},
		"the same id, started later":        {with(3, "1"), true},
		"of another namespace and boot":     {"00000000-zzzz-1-1", true},
		"no name of ours":                   {"somebody", false},
		"empty":                             {"", false},
		"no process id":                     {with(2, "-"), false},
		"process 0":                         {with(2, "0"), false},
		"a process id that is out of range": {with(2, "zzzzzzz"), false},
	} {
		if got := gone(c.owner); got != c.want {
			t.Errorf("%s (%s): gone is %v", name, c.owner, got)
		}
	}
}

func TestWhoTheProgramRunsAs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of several owners need root")
	}
	for name, c := range map[string]struct {
		uid, gid int
		want     runAs
	}{
		"root's":               {0, 0, runAs{nobody, nobody, true}},
		"root's with a group":  {0, 5, runAs{nobody, nobody, true}},
		"somebody's":           {1000, 1001, runAs{1000, 1001, false}},
		"somebody's in root's": {1000, 0, runAs{1000, nobody, false}},
	} {
		dir := t.TempDir()
		if err := os.Chown(dir, c.uid, c.gid); err != nil {
			t.Fatal(err)
		}
		if got, err := choose(dir, ""); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	if got, err := choose("", ""); err != nil || got != (runAs{nobody, nobody, false}) {
		t.Errorf("without a workspace: %+v, %v", got, err)
	}
	if _, err := choose("/no/such/folder", ""); err == nil {
		t.Error("a workspace that is not there")
	}
}

func TestATailKeepsTheEnd(t *testing.T) {
	var tail tail
	for i := range 2000 {
		fmt.Fprintf(&tail, "line %d\n", i)
	}
	lines := strings.Split(tail.String(), "\n")
	if len(lines) != tailLines || lines[tailLines-1] != "line 1999" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	fmt.Fprint(&tail, strings.Repeat("x", 10*tailBytes)+"\x1b]0;title\x07\xff\u202e end\n")
	if got := tail.String(); len(got) > tailBytes || !strings.HasSuffix(got, "]0;title\uFFFD end") {
		t.Errorf("%d bytes: %q", len(got), got[max(len(got)-40, 0):])
	}
}

func TestFoldersAreOursAlone(t *testing.T) {
	r, err := New(Options{StateDir: t.TempDir(), Entry: "/entry"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if owned(dir) == nil {
		t.Error("a folder others can look into passes for ours")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.SocketDir(); err == nil {
		t.Error("a closed runtime makes folders")
	}
	for _, o := range []Options{{}, {StateDir: "relative", Entry: "/e"}, {StateDir: "/s", Entry: "entry"}, {StateDir: "/s", Entry: "/e", Address: "c.sock"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
