//go:build linux

package container_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// workspace returns a folder with a file that belongs to uid.
func workspace(t testing.TB, uid int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	for _, sub := range []string{"", ".git"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"file": "from the host\n", ".git/config": "[core]\n", "secret": "s3cret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(p, uid, uid)
	})
	if err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	return dir
}

func TestAProgramIsContained(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	in := look(t, r, container.Spec{}, "write:/etc/passwd", "write:/new", "write:/tool", "write:/tmp/new", "read:/proc/interrupts", "write:/proc/sys/kernel/hostname",
		"write:/proc/irq/default_smp_affinity", "write:/sys/kernel/profiling", "write:/sys/fs/cgroup/cgroup.procs", "mount:", "unshare:", "mknod:/tmp/disk", "setid:", "read:/run/agentctl/env",
		"socket:1", "socket:16", "socket:17", "socket:38", "socket:40", "syscall:425", "syscall:323", "syscall:321", "syscall:101", "dial:127.0.0.1:22", "dial:1.1.1.1:443", "dial:169.254.169.254:80",
		"read:/etc/passwd", "list:/sys/firmware", "read:/run/containerd/containerd.sock", "exec:/tmp/new")
	for field, want := range map[string]string{
		"CapInh": zeros, "CapPrm": zeros, "CapEff": zeros, "CapBnd": zeros, "CapAmb": zeros,
		"NoNewPrivs": "1", "Seccomp": "2", "Uid": "65534\t65534\t65534\t65534", "Gid": "65534\t65534\t65534\t65534", "Groups": "",
	} {
		if got := in.Status[field]; got != want {
			t.Errorf("/proc/self/status %s: got %q, want %q", field, got, want)
		}
	}
	if !slices.Equal(in.Links, []string{"lo"}) {
		t.Errorf("network interfaces %v, want only lo", in.Links)
	}
	if in.Hostname != "agentctl" {
		t.Errorf("host name %q: the host's own?", in.Hostname)
	}
	if in.Dir != "/" {
		t.Errorf("working folder %q", in.Dir)
	}
	for attempt, want := range map[string]string{
		"write:/etc/passwd":                    "read-only file system",
		"write:/new":                           "read-only file system",
		"write:/tool":                          "read-only file system",
		"write:/tmp/new":                       "ok",
		"exec:/tmp/new":                        "permission denied",
		"read:/proc/interrupts":                "ok", // and empty, below
		"write:/proc/sys/kernel/hostname":      "permission denied|read-only",
		"write:/proc/irq/default_smp_affinity": "permission denied|read-only",
		"write:/sys/kernel/profiling":          "no such file",
		"write:/sys/fs/cgroup/cgroup.procs":    "no such file|permission denied|read-only",
		"mount:":                               "operation not permitted",
		"unshare:":                             "operation not permitted",
		"mknod:/tmp/disk":                      "operation not permitted",
		"setid:":                               "operation not permitted",
		"socket:1":                             "ok",
		"socket:16":                            "operation not permitted",     // AF_NETLINK
		"syscall:101":                          "operation not permitted",     // ptrace
		"socket:17":                            "operation not permitted",     // AF_PACKET
		"socket:38":                            "not permitted|not supported", // AF_ALG
		"socket:40":                            "not permitted|not supported", // AF_VSOCK
		"syscall:425":                          "operation not permitted",     // io_uring_setup
		"syscall:323":                          "operation not permitted",     // userfaultfd
		"syscall:321":                          "operation not permitted",     // bpf
		"dial:127.0.0.1:22":                    "connection refused",          // its own lo
		"dial:1.1.1.1:443":                     "network is unreachable",
		"dial:169.254.169.254:80":              "network is unreachable",
		"read:/etc/passwd":                     "ok",
		"list:/sys/firmware":                   "no such file",
		"read:/run/containerd/containerd.sock": "no such file",
	} {
		got := in.Attempts[attempt]
		if !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(got, w) }) {
			t.Errorf("%s: %s, want %s", attempt, got, want)
		}
	}
	if text := in.Files["/proc/interrupts"]; text != "" {
		t.Errorf("a masked path shows %q", text)
	}
	if !strings.Contains(in.Files["/etc/passwd"], "tool:x:65534:65534") {
		t.Errorf("/etc/passwd is not ours: %q", in.Files["/etc/passwd"])
	}
	for _, m := range in.Mounts {
		f := strings.Fields(m)
		if own := !strings.HasPrefix(f[4], "/proc") && !strings.HasPrefix(f[4], "/sys") && !strings.HasPrefix(f[4], "/dev") && f[4] != "/"; own && (!strings.Contains(f[5], "nosuid") || !strings.Contains(f[5], "nodev")) {
			t.Errorf("mount %s is not nosuid,nodev: %s", f[4], f[5])
		}
		if f[4] == "/" && !strings.HasPrefix(f[5], "ro") {
			t.Errorf("the root is mounted %s", f[5])
		}
	}
}

const zeros = "0000000000000000"

func TestTheEnvironmentIsExactlyTheDeclaredOne(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "of the runner")
	r := newRuntime(t)
	in := look(t, r, container.Spec{Env: []string{"TOKEN=declared", "LANG=de_DE.UTF-8"}})
	want := []string{"FROM_IMAGE=yes", "HOME=/tmp", "LANG=de_DE.UTF-8", "PATH=/bin:/", "TMPDIR=/tmp", "TOKEN=declared"}
	slices.Sort(in.Env)
	if !slices.Equal(in.Env, want) {
		t.Errorf("environment\n got %q\nwant %q", in.Env, want)
	}
	if strings.Contains(in.Parent, "declared") {
		t.Error("the environment of process 1 holds a declared variable: it came by the spec")
	}
}

// waiting starts a program that says so and waits.
func waiting(t testing.TB, r *container.Runtime, spec container.Spec) *container.Process {
	t.Helper()
	said := make(signal, 1)
	spec.Image, spec.Stdout = shared.layout, said
	if spec.Argv == nil {
		spec.Argv = []string{"/tool", "wait"}
	}
	p, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-said:
	case <-p.Done():
		t.Fatalf("it ended: %v", p.Wait())
	}
	return p
}

// signal is a writer that reports the first write.
type signal chan struct{}

func (s signal) Write(b []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(b), nil
}

func TestADeclaredVariableIsNowhereOnDisk(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	const canary = "canary-6f1d9c"
	p := waiting(t, r, container.Spec{Env: []string{"TOKEN=" + canary}})
	defer p.Kill(0)
	// It is there, in the program's memory:
	var env []byte
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID()))
	for _, file := range threads {
		if child, err := os.ReadFile(file); err == nil && len(child) > 0 {
			env, _ = os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/environ")
		}
	}
	if !strings.Contains(string(env), canary) {
		t.Fatalf("the program has no TOKEN: %q", env)
	}
	searched := 0
	for _, dir := range []string{shared.daemon.Root, shared.daemon.State, filepath.Dir(shared.daemon.Root), filepath.Join(shared.dir, "state")} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil //nolint:nilerr // what is gone in the meantime is nowhere
			}
			text, _ := os.ReadFile(path)
			searched++
			if strings.Contains(string(text), canary) {
				t.Errorf("%s holds the variable", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if searched < 20 {
		t.Errorf("only %d files were searched", searched)
	}
}

func TestAWorkspaceIsSeenAsDeclared(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, c := range map[string]struct {
		reason string
		owner  int
		access v1alpha1.WorkspaceAccess
		uid    string
		write  string
	}{
		"somebody's":           {"the program is who owns the files", 12345, v1alpha1.AccessReadWrite, "12345", "ok"},
		"somebody's read-only": {"declared read-only", 12345, v1alpha1.AccessReadOnly, "12345", "read-only file system"},
		"by default":           {"nothing declared is read-only", 12345, "", "12345", "read-only file system"},
		"root's":               {"never root, and yet the files can be written", 0, v1alpha1.AccessReadWrite, "65534", "ok"},
		"root's read-only":     {"never root", 0, v1alpha1.AccessReadOnly, "65534", "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t, c.owner)
			file, config, secret, fresh := filepath.Join(dir, "file"), filepath.Join(dir, ".git/config"), filepath.Join(dir, "secret"), filepath.Join(dir, "new")
			in := look(t, r, container.Spec{Workspace: dir, Access: c.access, ReadOnly: []string{config, filepath.Join(dir, "absent")}, Masked: []string{secret, filepath.Join(dir, "none")}},
				"read:"+file, "stat:"+file, "write:"+fresh, "write:"+config, "read:"+config, "read:"+secret, "write:"+filepath.Dir(dir)+"/beside")
			if got := strings.Fields(in.Status["Uid"])[1]; got != c.uid {
				t.Errorf("runs as uid %s, want %s: %s", got, c.uid, c.reason)
			}
			if in.Dir != dir {
				t.Errorf("working folder %s, want %s", in.Dir, dir)
			}
			if in.Files[file] != "from the host\n" || fmt.Sprint(in.Owners[file][0]) != c.uid {
				t.Errorf("file: %q of %v; %s", in.Files[file], in.Owners[file], in.Attempts["read:"+file])
			}
			if got := in.Attempts["write:"+fresh]; !strings.Contains(got, c.write) {
				t.Errorf("write: %s, want %s: %s", got, c.write, c.reason)
			}
			if in.Files[config] != "[core]\n" || !strings.Contains(in.Attempts["write:"+config], "read-only file system") {
				t.Errorf(".git/config: read %q, write %s", in.Files[config], in.Attempts["write:"+config])
			}
			if in.Files[secret] != "" {
				t.Errorf("a masked file says %q", in.Files[secret])
			}
			if got := in.Attempts["write:"+filepath.Dir(dir)+"/beside"]; got == "ok" {
				t.Error("a file beside the workspace was written")
			}
			info, err := os.Stat(fresh)
			if (err == nil) != (c.write == "ok") {
				t.Fatalf("on the host: %v", err)
			}
			if err == nil {
				if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != c.owner || int(st.Gid) != c.owner {
					t.Errorf("what was written belongs to %d:%d on the host, want %d", st.Uid, st.Gid, c.owner)
				}
			}
		})
	}
}

func TestNoProgramLeavesASetuidFileOfRoot(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	dir := workspace(t, 0)
	in := look(t, r, container.Spec{Workspace: dir, Access: v1alpha1.AccessReadWrite}, "setuid:"+dir+"/a", "setuidopen:"+dir+"/b", "write:"+dir+"/c")
	if in.Attempts["write:"+dir+"/c"] != "ok" {
		t.Fatalf("write: %s", in.Attempts["write:"+dir+"/c"])
	}
	for _, name := range []string{"a", "b"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s is %v and root's", name, info.Mode())
		}
	}
}

func TestOtherMountsAreSeenUnderTheirOwnPath(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	dir := workspace(t, nobody)
	tmp := filepath.Dir(dir)
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	in := look(t, r, container.Spec{Mounts: []v1alpha1.Mount{{Path: dir, Access: v1alpha1.MountReadWrite}, {Path: shared.entry}}},
		"read:"+file, "write:"+file, "write:"+shared.entry)
	if in.Files[file] != "from the host\n" || in.Attempts["write:"+file] != "ok" {
		t.Errorf("read %q, write %s", in.Files[file], in.Attempts["write:"+file])
	}
	if got := in.Attempts["write:"+shared.entry]; !strings.Contains(got, "read-only") {
		t.Errorf("a read-only mount: %s", got)
	}
}

// A link may have been put in the place of a mount by another tool, before or
// while the container is made.
func TestALinkIsNoMount(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	dir, host := workspace(t, nobody), workspace(t, nobody)
	if err := os.Symlink(host, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir + "/link", dir + "/link/.git", dir + "/link/file"} {
		p, err := r.Start(t.Context(), container.Spec{Image: shared.layout, Tool: "x", Argv: []string{"/tool", "inside"}, Mounts: []v1alpha1.Mount{{Path: path}}})
		if err == nil {
			p.Kill(0)
			t.Errorf("%s was mounted", path)
			continue
		}
		if !strings.Contains(err.Error(), "too many levels of symbolic links") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// If the folder is seen with the link in its place, it contains no file.
	stop, done := make(chan struct{}), make(chan struct{})
	mounted, link := filepath.Join(dir, ".git"), filepath.Join(dir, "link")
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, mounted, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 8 {
		var out bytes.Buffer
		p, err := r.Start(t.Context(), container.Spec{
			Image: shared.layout, Tool: "x", Stdout: &out, Mounts: []v1alpha1.Mount{{Path: mounted}},
			Argv: []string{"/tool", "inside", "read:" + mounted + "/file"},
		})
		if err != nil {
			continue // the link stood there
		}
		if info := wait(t, p); info.Code != 0 || strings.Contains(out.String(), "from the host") {
			t.Errorf("%+v: %s", info, out.String())
		}
	}
	close(stop)
	<-done
}

const nobody = 65534

func TestWhatWouldUndoTheContainmentIsRefused(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, c := range map[string]struct {
		spec container.Spec
		want string
	}{
		"root":            {container.Spec{Workspace: "/"}, "as a whole"},
		"relative":        {container.Spec{Workspace: "work"}, "not an absolute, clean path"},
		"unclean":         {container.Spec{Workspace: "/tmp/../etc"}, "not an absolute, clean path"},
		"absent":          {container.Spec{Workspace: "/no/such/folder"}, "no such file"},
		"proc":            {container.Spec{Mounts: []v1alpha1.Mount{{Path: "/proc/sys"}}}, "lies in /proc"},
		"the socket":      {container.Spec{Mounts: []v1alpha1.Mount{{Path: shared.daemon.Address}}}, "neither a file nor a folder"},
		"a device":        {container.Spec{Mounts: []v1alpha1.Mount{{Path: "/dev/mem"}}}, "lies in /dev"},
		"NUL":             {container.Spec{Argv: []string{"/tool\x00"}}, "NUL byte"},
		"no command":      {container.Spec{Argv: []string{""}}, "command is empty"},
		"masked outside":  {container.Spec{Masked: []string{"/etc/passwd"}}, "not inside the workspace"},
		"no proxy":        {container.Spec{Network: v1alpha1.NetworkProxy}, "without a proxy"},
		"unknown network": {container.Spec{Network: "Bridge"}, "unknown"},
		"tag":             {container.Spec{Image: "localhost:5000/x:latest"}, "has no digest"},
		"variable":        {container.Spec{Env: []string{"novalue"}}, "not NAME=value"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec.Image == "" {
				c.spec.Image = shared.layout
			}
			c.spec.Tool = "x"
			p, err := r.Start(t.Context(), c.spec)
			if err == nil {
				p.Kill(0)
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `of tool "x"`) {
				t.Errorf("error %q, want %q and the tool", err, c.want)
			}
		})
	}
}
