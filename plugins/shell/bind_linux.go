package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell/internal/record"
)

// bind returns the rules of a call for a program in a folder; nil if nothing binds it.
func bind(b *sdk.Binding, program string, env []string, dir string) (*rules, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // there is nothing to apply
	}
	r, err := newRules(b.Network)
	if err != nil || r == nil {
		return nil, err
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v // the last counts
		}
	}
	err = r.add(b, path, dir)
	if err == nil {
		err = r.addPrograms([]string{program}, path, dir)
	}
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// start starts a command that the rules bind, where it cannot be recorded. They are applied
// to a thread of its own, which ends with this: a thread can take nothing back.
func (r *rules) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := r.restrict()
		if err == nil {
			err = cmd.Start()
		}
		done <- err
	}()
	return <-done
}

// end releases the rules; those of a process are in the kernel.
func (r *rules) end() {
	if r != nil {
		_ = r.Close()
	}
}

// leastABI is the first Landlock version that lets a file be renamed into another folder.
// An older version would break commands, so a call is not bound there.
const leastABI = 2

// Rights of Landlock: what makes, what removes, and what changes the content of files.
const (
	mayMake = unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	mayRemove = unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	mayChange = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	mayRun    = unix.LANDLOCK_ACCESS_FS_EXECUTE
	mayMove   = unix.LANDLOCK_ACCESS_FS_REFER
	held      = mayMake | mayRemove | mayChange | mayRun | mayMove | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// onFile are the rights that a rule about a file can give.
	onFile = mayChange | mayRun
)

// landlockABI is what this kernel offers, 0 for nothing.
var landlockABI = sync.OnceValue(func() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
})

// rules are a Landlock ruleset in the making. They bind the process that applies them, and
// what it starts.
type rules struct {
	*os.File
	// rights are the same in a form in which they can be looked up.
	rights record.Rights
}

// devices may always be written to: nothing is kept there.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}

// newRules returns rules that allow to read and to use devices, and nothing else; nil where
// the kernel has none. With network they leave connections to the isolation.
func newRules(network bool) (*rules, error) {
	abi := landlockABI()
	if abi < leastABI {
		return nil, nil //nolint:nilnil // there is nothing to apply
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: held}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi < 3 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		if !network {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
		size = unsafe.Offsetof(attr.Handled_access_net) + unsafe.Sizeof(attr.Handled_access_net)
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
		if !network {
			attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // the kernel's structure
	if errno != 0 {
		return nil, fmt.Errorf("make a landlock ruleset: %w", errno)
	}
	refused := attr.Handled_access_net != 0
	r := &rules{os.NewFile(fd, "landlock"), record.Rights{
		Handled: attr.Handled_access_fs, Listen: refused, Connect: refused, Abstract: attr.Scoped&unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET != 0,
	}}
	for _, device := range devices {
		if err := r.allow(device, mayChange, 0); err != nil {
			r.end()
			return nil, err
		}
	}
	return r, nil
}

// add allows what a binding does. What is not there any more, or is not what was judged, is
// left out.
func (r *rules) add(b *sdk.Binding, path, dir string) error {
	for _, folder := range b.Scratch {
		_ = os.MkdirAll(folder, 0o700) // what is not there has no rule
		if err := r.allow(folder, r.rights.Handled&^mayRun, 0); err != nil {
			return err
		}
	}
	for _, p := range b.Paths {
		if err := r.addPath(p); err != nil {
			return err
		}
	}
	return r.addPrograms(b.Programs, path, dir)
}

// addPath allows what one path of a binding does:
//
//	operation   an existing file        an existing folder              what does not exist
//	write       change it               all but removing, below it      make and change, in the folder
//	replace     the same, and all in    all below it                    the same, and remove
//	            the folder
//	remove      remove in the folder    and all below it                remove in the folder
//	rename      make, remove and move in the folder
//
// The kernel knows no names that do not exist yet, and none of what is removed: such rights
// are those of the folder, and of all folders below it.
func (r *rules) addPath(p sdk.BoundPath) error {
	info, err := os.Lstat(p.Path)
	there := err == nil
	isDir := there && info.IsDir()
	folder, parent := filepath.Dir(p.Path), uint64(0)
	own, links := uint64(0), max(p.Links, 1)
	switch p.Op {
	case sdk.BoundWrite, sdk.BoundReplace:
		own = mayChange | mayMake
		if p.Op == sdk.BoundReplace {
			own |= mayRemove | mayMove
		}
		if !there || p.Op == sdk.BoundReplace && !isDir {
			parent = own
		}
	case sdk.BoundRemove:
		own, parent = mayRemove, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
		if !there || isDir {
			parent = mayRemove
		}
	case sdk.BoundRename:
		parent = mayMake | mayRemove | mayMove
	default:
		return fmt.Errorf("the binding holds the operation %q, which this program does not know", p.Op)
	}
	if there && own != 0 && (isDir || own&mayChange != 0) {
		if err := r.allow(p.Path, own, links); err != nil {
			return err
		}
	}
	if parent == 0 {
		return nil
	}
	for !exists(folder) { // the command makes the folders between
		folder = filepath.Dir(folder)
	}
	return r.allow(folder, parent, 0)
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// allow adds a rule for a path and everything below it. A path that is a link, or behind
// one, is not what was judged. Neither is a file with more names than it had, unless links
// is 0.
func (r *rules) allow(path string, rights uint64, links int) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil // the command will find out
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("bind the call to %s: %w", path, err)
	}
	if is, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", at)); err != nil || is != path || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFile
		if links > 0 && uint64(st.Nlink) > uint64(links) { //nolint:unconvert // its type differs by architecture
			return nil
		}
	}
	return r.rule(at, &st, path, rights)
}

func (r *rules) rule(at int, st *unix.Stat_t, path string, rights uint64) error {
	if rights &= r.rights.Handled; rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}                                                         //nolint:gosec // a descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel's structure
	if errno != 0 {
		return fmt.Errorf("bind the call to %s: %w", path, errno)
	}
	r.rights.Add(st, rights)
	return nil
}

// restrict applies the rules to this thread, and so to what it starts.
func (r *rules) restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, r.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("apply the landlock rules: %w", errno)
	}
	return nil
}
