package record

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// rightsToFiles are all that a rule about files can give, but for reading.
const rightsToFiles = run | write | cut | makeFile | makeLink | makeDir | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER

// newRules makes a ruleset, with the same rights in the form that is tested.
func newRules(t testing.TB) (*os.File, *Rights) {
	t.Helper()
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < 6 {
		t.Skipf("Landlock ABI %d (%v): connections and sockets are bound from 6", abi, errno)
	}
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: rightsToFiles, Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP,
		Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET,
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	f := os.NewFile(fd, "rules")
	t.Cleanup(func() { _ = f.Close() })
	rights := &Rights{Handled: rightsToFiles, Listen: true, Connect: true, Abstract: true}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addRule(t, f, rights, self, run)
	addRule(t, f, rights, "/usr/lib", run)    // its loader
	addRule(t, f, rights, "/dev/null", write) // a program that is started gets it as its output
	return f, rights
}

func addRule(t testing.TB, rules *os.File, rights *Rights, path string, allowed uint64) {
	t.Helper()
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		t.Fatal(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		allowed &= run | write | cut
	}
	if allowed == 0 {
		return
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: allowed, Parent_fd: int32(at)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		t.Fatal(path, errno)
	}
	rights.Add(&st, allowed)
}

// What the kernel refuses by its rules is what is called refused, and nothing else: random
// system calls in a random tree under random rules.
func TestWhatIsCalledRefusedIsWhatTheKernelRefuses(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	refused, allowed := 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			root := tree(t, r)
			rules, rights := newRules(t)
			for range 1 + r.IntN(8) {
				addRule(t, rules, rights, pick(r, places(t, root)), randomRights(r))
			}
			a := newActor(t, root, rules, rights)
			names, dir := hold(a, r, root), root
			for n := range 120 {
				d := randomDeed(r, root, names)
				before := describe(root)
				errno, seen := a.do(d)
				if a.unread > 0 {
					t.Errorf("deed %d %+v: it was not read", n, d)
				}
				if d.Does == "chdir" && errno == 0 {
					dir = d.Path
				}
				by := errno == syscall.EACCES
				if d.Does == "execute" && by && !runnable(dir, d.Path) {
					by = false // whatever the rules are
				}
				called := len(seen) > 0 && seen[len(seen)-1].refused
				if by != called {
					t.Fatalf("deed %d %+v: the kernel says %v, the record %s\nbefore:\n%s", n, d, errno, all(seen), before)
				}
				if by {
					refused++
				} else if errno == 0 && len(seen) > 0 {
					allowed++
				}
				if errno == 0 && changesSomething(&d) && len(seen) == 0 {
					t.Fatalf("deed %d %+v succeeded and was not recorded\nbefore:\n%s", n, d, before)
				}
			}
		})
	}
	t.Logf("%d refused, %d allowed and recorded", refused, allowed)
	if !testing.Short() && (refused < 500 || allowed < 150) {
		t.Errorf("%d refused and %d allowed are too few to compare", refused, allowed)
	}
}

// runnable reports whether a path leads to a file that can be executed.
func runnable(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	path = strings.Replace(path, "/proc/self/cwd", dir, 1)
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func changesSomething(d *deedOf) bool {
	switch d.Does {
	case "hold", "keep", "chdir":
		return false
	case "open", "openhow":
		return d.Flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL // else it may be a device, or nothing
	}
	return true
}

func all(seen []*attempt) string {
	var s []string
	for _, a := range seen {
		s = append(s, fmt.Sprintf("%+v", *a))
	}
	return strings.Join(s, "; ")
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomRights(r *rand.Rand) (rights uint64) {
	for bit := uint64(1); bit <= rightsToFiles; bit <<= 1 {
		if rightsToFiles&bit != 0 && r.IntN(2) == 0 {
			rights |= bit
		}
	}
	if r.IntN(4) == 0 {
		rights = rightsToFiles
	}
	return rights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
}

// tree makes folders, files, links, a pipe and programs.
func tree(t *testing.T, r *rand.Rand) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"a/b/c", "d/e", "f"} {
		must(os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	at := func(p string) string { return filepath.Join(root, p) }
	for _, f := range []string{"one", "a/two", "a/b/three", "a/b/c/four", "d/five", "d/e/six", "f/seven"} {
		must(os.WriteFile(at(f), []byte(f), 0o755))
	}
	must(os.Link(at("a/two"), at("d/two")))
	must(os.Symlink("a/b", at("toB")))
	must(os.Symlink(at("d"), at("toD")))
	must(os.Symlink("../one", at("a/toOne")))
	must(os.Symlink("nothing", at("f/toNothing")))
	must(os.Symlink("../toD/e/new", at("f/toNew")))
	must(os.Symlink("loop", at("loop")))
	must(os.Symlink("/proc/self/cwd", at("here")))
	must(os.Symlink("/proc/thread-self/cwd/one", at("f/thread")))
	must(os.Symlink("/dev/null", at("nowhere")))
	must(unix.Mkfifo(at("pipe"), 0o644))
	binary, err := os.ReadFile("/bin/true")
	must(err)
	must(os.WriteFile(at("a/run"), binary, 0o755))
	must(os.WriteFile(at("script"), []byte("#!"+at("a/run")+" x\n"), 0o755))
	must(os.WriteFile(at("d/script"), []byte("#!"+at("script")+"\n"), 0o755))
	must(os.WriteFile(at("d/relative"), []byte("#! a/run\n"), 0o755))
	must(os.WriteFile(at("d/missing"), []byte("#!/nonexistent\n"), 0o755))
	must(os.Symlink("../script", at("f/toScript")))
	return root
}

// places are all paths in a tree.
func places(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		all = append(all, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func describe(root string) string {
	out, _ := exec.Command("find", root, "-printf", "%y %P -> %l\n").Output() //nolint:noctx // of a test
	return string(out)
}

// hold has the actor open some folders and a file.
func hold(a *actor, r *rand.Rand, root string) (names []string) {
	names = []string{"", ""}
	for _, p := range []string{"a", "a/b", "d", "f"} {
		if errno, _ := a.do(deedOf{Does: "hold", Path: filepath.Join(root, p), Path2: p}); errno != 0 {
			a.t.Fatal(errno)
		}
		names = append(names, p)
	}
	return names
}

// spell returns a path to something in the tree, in one of many ways.
func spell(r *rand.Rand, root string) string {
	p := pick(r, []string{
		"one", "a/two", "a/b/three", "a/b/c/four", "d/five", "d/e/six", "d/two", "f/seven", "new", "a/new", "a/b/new", "d/e/new", "f/new/er", "a", "a/b", "d/e", "f", "toB", "toD",
		"toB/three", "toB/c/new", "toD/five", "toD/e", "a/toOne", "f/toNothing", "f/toNew", "loop", "loop/x", "here/one", "here/a/two", "f/thread", "nowhere", "pipe", "a/run",
		"one/x", ".", "..", "a/.", "a/..", "toB/..", "toB/../new", "new2", "d/new2", "f/link",
	})
	switch r.IntN(8) {
	case 0:
		p = filepath.Join(root, p)
	case 1:
		p = root + "//" + p
	case 2:
		p = "./" + p
	case 3:
		p = "a/../" + p
	case 4:
		p = "/proc/self/cwd/" + p
	case 5:
		p += "/"
	case 6:
		p = root + "/here/" + p
	}
	return p
}

func randomDeed(r *rand.Rand, root string, names []string) deedOf {
	d := deedOf{Dir: pick(r, names), Dir2: pick(r, names), Path: spell(r, root), Path2: spell(r, root), Mode: 0o755}
	d.Does = pick(r, []string{"open", "open", "open", "openhow", "truncate", "unlink", "unlink", "rename", "rename", "link", "symlink", "mkdir", "mknod", "execute", "chdir"})
	one := func(flags ...int) (all int) {
		for _, f := range flags {
			if r.IntN(3) == 0 {
				all |= f
			}
		}
		return all
	}
	switch d.Does {
	case "open", "openhow":
		d.Flags = pick(r, []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND}) |
			one(unix.O_CREAT, unix.O_TRUNC, unix.O_NOFOLLOW) | pick(r, []int{0, 0, 0, unix.O_EXCL, unix.O_DIRECTORY, unix.O_PATH})
		if d.Flags&unix.O_DIRECTORY != 0 {
			d.Flags &^= unix.O_CREAT // what the two do together depends on the kernel
		}
		if r.IntN(12) == 0 {
			d.Flags = unix.O_TMPFILE | unix.O_RDWR
		}
		if d.Does == "openhow" {
			if d.Flags&unix.O_PATH != 0 {
				d.Flags &= unix.O_PATH | unix.O_NOFOLLOW
			}
			if d.Flags&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) == 0 {
				d.Mode = 0
			}
		}
	case "unlink":
		d.Flags = one(unix.AT_REMOVEDIR)
	case "rename":
		d.Flags = pick(r, []int{0, 0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE})
	case "link":
		d.Flags = one(unix.AT_SYMLINK_FOLLOW)
	case "symlink":
		d.Path2 = pick(r, []string{"one", "a", "/etc/passwd"})
	case "mknod":
		d.Mode |= pick(r, []uint32{unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK, 0})
	case "execute":
		d.Path = pick(r, []string{"a/run", "script", "d/script", "d/relative", "d/missing", "f/toScript", "toB/../run", "one", "nothing", root + "/a/run", "/bin/true", "/proc/self/cwd/a/run"})
		if !strings.Contains(d.Path, "/") {
			d.Path = "./" + d.Path
		}
	case "chdir":
		d.Path = pick(r, []string{root, root, root + "/a", root + "/toB", root + "/f"})
	}
	return d
}

// The operations are those that the protocol has.
func TestAttemptsHaveTheirNames(t *testing.T) {
	root := tree(t, rand.New(rand.NewPCG(1, 1)))
	a := newActor(t, root, nil, nil)
	for name, c := range map[string]struct {
		deed deedOf
		want attempt
	}{
		"write":        {deedOf{Does: "open", Path: "one", Flags: unix.O_WRONLY}, attempt{op: sdk.RecordWrite, path: "one"}},
		"append":       {deedOf{Does: "open", Path: "toB/three", Flags: unix.O_RDWR | unix.O_APPEND}, attempt{op: sdk.RecordWrite, path: "a/b/three"}},
		"create":       {deedOf{Does: "open", Path: "a/../new", Flags: unix.O_WRONLY | unix.O_CREAT}, attempt{op: sdk.RecordCreate, path: "new"}},
		"by link":      {deedOf{Does: "open", Path: "f/toNew", Flags: unix.O_WRONLY | unix.O_CREAT}, attempt{op: sdk.RecordCreate, path: "d/e/new"}},
		"empty":        {deedOf{Does: "truncate", Path: "d/five"}, attempt{op: sdk.RecordTruncate, path: "d/five"}},
		"remove":       {deedOf{Does: "unlink", Path: "toD/e/six"}, attempt{op: sdk.RecordRemove, path: "d/e/six"}},
		"a link":       {deedOf{Does: "unlink", Path: "a/toOne"}, attempt{op: sdk.RecordRemove, path: "a/toOne"}},
		"rename":       {deedOf{Does: "rename", Path: "f/seven", Path2: "toD/seven"}, attempt{op: sdk.RecordRename, path: "f/seven", to: "d/seven"}},
		"hard link":    {deedOf{Does: "link", Path: "a/b/c/four", Path2: "f/four"}, attempt{op: sdk.RecordLink, path: "a/b/c/four", to: "f/four"}},
		"symlink":      {deedOf{Does: "symlink", Path: "f/s", Path2: "../one"}, attempt{op: sdk.RecordCreate, path: "f/s"}},
		"folder":       {deedOf{Does: "mkdir", Path: "toB/folder/", Mode: 0o755}, attempt{op: sdk.RecordCreate, path: "a/b/folder"}},
		"mode":         {deedOf{Does: "chmod", Path: "f/toScript", Mode: 0o755}, attempt{op: sdk.RecordMode, path: "script"}},
		"execute":      {deedOf{Does: "execute", Path: "f/toScript"}, attempt{op: sdk.RecordExecute, path: "script", argv: []string{"program", "one", "two words"}}},
		"through proc": {deedOf{Does: "open", Path: "/proc/thread-self/cwd/a/two", Flags: unix.O_WRONLY}, attempt{op: sdk.RecordWrite, path: "a/two"}},
	} {
		_, seen := a.do(c.deed)
		if len(seen) != 1 {
			t.Errorf("%s: seen %s", name, all(seen))
			continue
		}
		got := *seen[0]
		got.path, got.to = strings.TrimPrefix(got.path, root+"/"), strings.TrimPrefix(got.to, root+"/")
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	for name, d := range map[string]deedOf{
		"a device":            {Does: "open", Path: "nowhere", Flags: unix.O_WRONLY},
		"a pipe":              {Does: "open", Path: "pipe", Flags: unix.O_RDWR},
		"nothing there":       {Does: "unlink", Path: "never"},
		"there already":       {Does: "mkdir", Path: "a"},
		"only a place":        {Does: "open", Path: "one", Flags: unix.O_PATH | unix.O_WRONLY},
		"no way there":        {Does: "open", Path: "never/x", Flags: unix.O_WRONLY | unix.O_CREAT},
		"no such program":     {Does: "execute", Path: "./never"},
		"nothing to execute":  {Does: "execute", Path: "./a"},
		"the same name twice": {Does: "link", Path: "one", Path2: "a"},
	} {
		if errno, seen := a.do(d); len(seen) > 0 {
			t.Errorf("%s (%v): seen %s", name, errno, all(seen))
		}
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(content))
}

func renameFile(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
