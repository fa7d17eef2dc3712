//go:build linux

package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

func TestLimitsAreWrittenAsAGroupTakesThem(t *testing.T) {
	got := map[string]string{}
	left := spec.Limits{Memory: 512 << 20, Pids: 128, CPU: 1500, Files: 10}
	for _, k := range knobs(left) {
		got[k.controller+" "+k.file] = k.value
		k.enforced(&left)
	}
	want := map[string]string{"memory memory.max": "536870912", "pids pids.max": "144", "cpu cpu.max": "150000 100000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(spec.Limits{Files: 10}, left); diff != "" {
		t.Errorf("what a group enforces is left to the helper: %s", diff)
	}
	if list := knobs(spec.Limits{Files: 1, Scratch: 1}); len(list) != 0 {
		t.Errorf("%d limits of a group, although none is its", len(list))
	}
	if k := knobs(spec.Limits{CPU: 1}); k[0].value != "1000 100000" {
		t.Errorf("cpu = %q, less than the kernel takes", k[0].value)
	}
}

func TestAPlaceThatTakesNoLimitIsLeftAsItWas(t *testing.T) {
	place := workspace(t) // an ordinary folder has no limit files, and they cannot be created
	left := spec.Limits{Memory: 1}
	if g := newGroup([]string{"/no/such/place", place}, knobs(left), &left); g != nil {
		t.Errorf("group %+v", g)
	}
	if left.Memory != 1 {
		t.Error("a limit that nothing enforces is not left to the helper")
	}
	if list, _ := os.ReadDir(place); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
}

func TestTheOwnGroupIsFound(t *testing.T) {
	dir := workspace(t)
	write(t, dir+"/mounts", "23 1 0:2 / /sys rw - sysfs sysfs rw\n31 23 0:3 /docker/x /elsewhere rw - cgroup2 cgroup2 rw\n32 23 0:3 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
	write(t, dir+"/groups", "4:memory:/a\n0::/user.slice/user-1000.slice/app.scope\n")
	write(t, dir+"/outside", "0::/../x\n")
	if got := cgroupMount(dir + "/mounts"); got != "/sys/fs/cgroup" {
		t.Errorf("mount = %q", got)
	}
	if got := cgroupPath(dir + "/groups"); got != "/user.slice/user-1000.slice/app.scope" {
		t.Errorf("path = %q", got)
	}
	if got := cgroupPath(dir+"/outside") + cgroupPath(dir+"/none") + cgroupMount(dir+"/none"); got != "" {
		t.Errorf("found %q, want nothing", got)
	}
}

// TestASandboxLivesInItsGroup uses a setting that every group has, whatever
// controllers this machine hands down.
func TestASandboxLivesInItsGroup(t *testing.T) {
	needed(t)
	places := groupPlaces()
	var l spec.Limits
	g := newGroup(places, []knob{{"none", "cgroup.max.descendants", "0", func(*spec.Limits) {}}}, &l)
	if g == nil {
		t.Skipf("this user may make no cgroup in %q", places)
	}
	dead := filepath.Join(filepath.Dir(g.dir), groupName+"4194303-x") // above the largest process id there is here
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sys := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.fd.Fd())}
	proc, err := os.StartProcess("/bin/cat", []string{"cat", "/proc/self/cgroup"}, &os.ProcAttr{Sys: sys, Env: []string{}, Files: []*os.File{nil, w, nil}})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out, _ := io.ReadAll(r)
	_ = r.Close()
	if st, err := proc.Wait(); err != nil || !st.Success() || !strings.Contains(string(out), "/"+filepath.Base(g.dir)+"\n") {
		t.Errorf("%v, %v, in %q", st, err, out)
	}
	if b := read(t, g.dir+"/cgroup.procs"); b != "" {
		t.Errorf("processes %q are left", b)
	}
	g.remove()
	if _, err := os.Stat(g.dir); err == nil {
		t.Error("the group is left")
	}
	sweepGroups(filepath.Dir(g.dir))
	if _, err := os.Stat(dead); err == nil {
		t.Error("the group of a dead runner is left")
	}
	if !strings.Contains(g.dir, strconv.Itoa(os.Getpid())) {
		t.Errorf("group %s does not name its runner", g.dir)
	}
}
