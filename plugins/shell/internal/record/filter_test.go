package record

import (
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter as the kernel would.
func judge(t *testing.T, p []unix.SockFilter, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{offsetNumber: number, offsetArch: arch}
	for i, a := range args {
		data[offsetArgument+8*uint32(i)] = a
	}
	var acc uint32
	for at := 0; at < len(p); at++ {
		in := p[at]
		jump := func(ok bool) {
			if ok {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		default:
			t.Fatalf("instruction %d: unknown code %#x", at, in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestAFilterReportsTheCallsOfItsScope(t *testing.T) {
	for scope, everything := range map[Scope]bool{Programs: false, Everything: true} {
		p := filter(scope)
		if len(p) > 250 {
			t.Errorf("%d instructions: a jump has 8 bits", len(p))
		}
		listed := map[uintptr]*call{}
		for i := range calls {
			listed[calls[i].number] = &calls[i]
		}
		if len(listed) != len(calls) {
			t.Errorf("%d numbers for %d calls", len(listed), len(calls))
		}
		for number := range uint32(600) {
			c, want := listed[uintptr(number)], allow
			args := make([]uint32, 6)
			if c != nil && (everything || c.does == execute) {
				want = report
				if c.does == open && c.flags != none {
					args[c.flags] = unix.O_WRONLY
				}
			}
			if got := judge(t, p, auditArch, number, args...); got != want {
				t.Errorf("scope %d, call %d: %#x, want %#x", scope, number, got, want)
			}
			if got := judge(t, p, auditArch+1, number, args...); got != allow {
				t.Errorf("scope %d, call %d of another architecture: %#x", scope, number, got)
			}
		}
		for flags, want := range map[uint32]bool{
			unix.O_RDONLY: false, unix.O_RDONLY | unix.O_CLOEXEC | unix.O_DIRECTORY: false, unix.O_WRONLY: true, unix.O_RDWR: true, unix.O_CREAT: true, unix.O_TRUNC: true,
			unix.O_PATH: false, unix.O_PATH | unix.O_RDWR: false, unix.O_TMPFILE | unix.O_RDWR: true,
		} {
			if got := judge(t, p, auditArch, unix.SYS_OPENAT, 0, 0, flags); (got == report) != (want && everything) {
				t.Errorf("scope %d, open with flags %#x: %#x", scope, flags, got)
			}
		}
	}
}

// The code and its data fit into the places that they have, for each kind.
func TestImagesHaveTheirParts(t *testing.T) {
	for _, p := range []plan{{Everything, 3, 4, 3}, {Programs, none, 3, 3}, {Everything, 4, 3, none}, {0, 4, 3, none}} {
		content := p.launcher()
		if p.own == none {
			content = p.object("agentctl_bind")
		}
		if len(content) <= dataOffset || len(content) > dataOffset+0x1000 {
			t.Errorf("%+v: %d bytes", p, len(content))
		}
	}
}

// A program that was replaced, or whose interpreter was, is looked at again.
func TestAJudgedProgramIsWhatItWas(t *testing.T) {
	dir := t.TempDir()
	rules, rights := newRules(t)
	for _, name := range []string{"program", "other", "interpreter", "another"} {
		copyFile(t, "/bin/true", dir+"/"+name)
	}
	writeFile(t, dir+"/script", "#!"+dir+"/interpreter\n")
	for _, name := range []string{"program", "interpreter", "script"} {
		addRule(t, rules, rights, dir+"/"+name, run)
	}
	var program, script, interpreter unix.Stat_t
	for name, st := range map[string]*unix.Stat_t{"program": &program, "script": &script, "interpreter": &interpreter} {
		if err := unix.Stat(dir+"/"+name, st); err != nil {
			t.Fatal(err)
		}
	}
	step, ok := NewStep(dir+"/interpreter", &interpreter)
	if !ok {
		t.Fatal("an absolute path is none")
	}
	if _, ok := NewStep("interpreter", &interpreter); ok {
		t.Error("a relative path depends on the folder")
	}
	rights.Whole(dir+"/program", &program, nil)
	rights.Whole(dir+"/script", &script, []Step{step})
	a := newActor(t, dir, rules, rights)
	for i, c := range []struct {
		before  func()
		path    string
		refused string
	}{
		{nil, dir + "/program", ""},
		{nil, dir + "/script", ""},
		{nil, dir + "/other", dir + "/other"},
		{func() { renameFile(t, dir+"/another", dir+"/interpreter") }, dir + "/script", dir + "/interpreter"},
		{func() { renameFile(t, dir+"/other", dir+"/program") }, dir + "/program", dir + "/program"},
	} {
		if c.before != nil {
			c.before()
		}
		errno, seen := a.do(deedOf{Does: "execute", Path: c.path})
		got := ""
		for _, s := range seen {
			if s.refused {
				got = s.path
			}
		}
		if got != c.refused || (errno == unix.EACCES) != (c.refused != "") {
			t.Errorf("case %d, %s: %v, refused %q", i, c.path, errno, got)
		}
	}
}
