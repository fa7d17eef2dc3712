package shell

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// denyEnv has the test program start itself on a kernel that lacks something, deniedEnv says
// what.
const denyEnv, deniedEnv = "SHELL_TEST_DENY", "SHELL_TEST_DENIED"

// deny takes from this process what a kernel may lack, and starts it again.
func deny(what string) {
	runtime.LockOSThread()
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(test uint16, k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: skip}
	}
	list := []unix.SockFilter{load(0)}
	switch what {
	case "listener":
		list = append(list, unless(unix.BPF_JEQ, unix.SYS_SECCOMP, 3), load(24), unless(unix.BPF_JSET, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, 1), refuse(unix.EINVAL))
	case "memfd":
		list = append(list, unless(unix.BPF_JEQ, unix.SYS_MEMFD_CREATE, 1), refuse(unix.ENOSYS))
	}
	list = append(list, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		panic(errno)
	}
	self, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Unsetenv(denyEnv), os.Setenv(deniedEnv, what))
	}
	panic(errors.Join(err, unix.Exec(self, os.Args, os.Environ())))
}

// On a kernel that lacks a part, everything else holds.
func TestWhatAKernelMayLack(t *testing.T) {
	needRecord(t)
	for what, tests := range map[string]string{
		"listener": "TestACallCannotExceedItsFacts|TestABoundCommandDoesWhatItDoesUnbound|TestNothingIsRecorded",
		"memfd":    "TestACallCannotExceedItsFacts|TestWhatExceedsTheFactsIsNamed|TestARecordListsWhatACallHasDone",
	} {
		t.Run(what, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, "-test.run", "^("+tests+")$", "-test.v")
			cmd.Env = append(os.Environ(), denyEnv+"="+what)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "--- SKIP: TestWhat") {
				t.Errorf("%v\n%s", err, out)
			}
			if n := strings.Count("\n"+string(out), "\n--- PASS: Test"); n != 3 {
				t.Errorf("%d of 3 tests passed\n%s", n, out)
			}
		})
	}
}

// TestNothingIsRecorded is for a kernel that does not report system calls.
func TestNothingIsRecorded(t *testing.T) {
	if os.Getenv(deniedEnv) != "listener" {
		t.Skip("TestWhatAKernelMayLack starts it on such a kernel")
	}
	root := filesIn(t, map[string]string{"a": "one\n"})
	bothWays(t, func(t *testing.T, b *bash, prepare func(string)) {
		t.Helper()
		prepare(root)
		for _, call := range []*sdk.Call{{Workspace: root, Binding: bound(root, "cat")}, {Workspace: root, RecordPrograms: true}} {
			res := runTool(t.Context(), t, b.tool(), call, map[string]any{"command": "cat a"})
			if res.Record != nil || res.Text != "one\n" || exit(res) != "0" {
				t.Errorf("%q, exit %s, record %+v", res.Text, exit(res), res.Record)
			}
			b.preparing.Wait()
		}
	})
}
