package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// probeTime bounds the trial.
const probeTime = 10 * time.Second

// try builds a sandbox and runs a program in it.
func (l *Launcher) try(ctx context.Context) probed {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	own := New(Options{Helper: l.opts.Helper, TempDir: l.opts.TempDir})
	defer func() { _ = own.Close() }()
	p, err := own.Start(ctx, Spec{Argv: []string{"true"}, Dir: "/", Profile: &spec.Profile{}})
	if err != nil {
		text := err.Error()
		if e, ok := errors.AsType[*reason.Error](err); ok {
			text = e.Error()
		}
		return probed{Missing: text, Hint: reason.Hint(err)}
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return probed{Missing: "a program in a sandbox does not end", Hint: "run agentctl doctor"}
	}
	if exit := p.Wait(); exit != (ExitInfo{}) {
		return probed{Missing: fmt.Sprintf("a program in a sandbox ends with %v", exit), Hint: "run agentctl doctor"}
	}
	r := p.inner.instance
	return probed{Landlock: r.landlock, Unenforced: r.unenforced}
}

// cachedProbe is try, once per boot. Only a good answer is kept: a bad one is
// what people change.
func (l *Launcher) cachedProbe() probed {
	key := l.probeKey()
	file := filepath.Join(l.opts.State, "cache", "sandbox-probes.json")
	if l.opts.State != "" && key != "" {
		if p, ok := recall(file, key); ok {
			return p
		}
	}
	p := l.try(context.Background())
	if l.opts.State != "" && key != "" && p.Missing == "" {
		keep(file, key, p) // or probe again the next time
	}
	return p
}

// probeKey is all that the answer depends on and that can be read at no cost.
func (l *Launcher) probeKey() string {
	helper, err := l.helper()
	if err != nil {
		return ""
	}
	file, err := fingerprint(helper)
	boot, bootErr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var u unix.Utsname
	if err != nil || bootErr != nil || unix.Uname(&u) != nil {
		return ""
	}
	// What a person, or a container around this process, forbids meanwhile counts.
	users, _ := os.Readlink("/proc/self/ns/user")
	for _, name := range forbidding {
		users += " " + sysctl(name)
	}
	return fmt.Sprintf("%s %s %d %s %s %d", bytes.TrimSpace(boot), unix.ByteSliceToString(u.Release[:]), os.Getuid(), users, file, spec.Version)
}

// forbidding are the settings by which a host forbids user namespaces.
var forbidding = []string{"user.max_user_namespaces", "kernel.apparmor_restrict_unprivileged_userns", "kernel.unprivileged_userns_clone"}

// fingerprint changes when the content of a file does.
func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	id, ok := identify(f)
	if !ok {
		return "", errors.New("unknown file system")
	}
	return fmt.Sprintf("%d:%d %d %d %d", id.dev, id.ino, id.size, id.mtime.UnixNano(), id.ctime.UnixNano()), nil
}

// kept is an answer in the cache, which is a list with the newest first.
type kept struct {
	Key    string `json:"key"`
	Answer probed `json:"answer"`
}

// mostKept is how many answers the cache holds: builds of agentctl that are used
// by turns, one after an update or in another checkout, each have their own.
const mostKept = 8

// maxCache bounds the file of the cache.
const maxCache = 32 << 10

// recallAll reads the cache; a file that others could have written is empty.
func recallAll(file string) []kept {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || int(st.Uid) != os.Getuid() || st.Mode&0o022 != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxCache))
	var list []kept
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	return list
}

// recall returns the answer that the cache has for a key.
func recall(file, key string) (probed, bool) {
	for _, k := range recallAll(file) {
		if k.Key == key && k.Answer.Missing == "" {
			return k.Answer, true
		}
	}
	return probed{}, false
}

// keep adds an answer to the cache. What another process adds at the same moment
// may be lost, and is then probed again.
func keep(file, key string, p probed) {
	list := []kept{{key, p}}
	for _, k := range recallAll(file) {
		if k.Key != key && len(list) < mostKept {
			list = append(list, k)
		}
	}
	b, err := json.Marshal(list)
	if err != nil || len(b) > maxCache || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".probe-")
	if err != nil {
		return
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
}

// diagnose returns why the namespaces of a sandbox could not be created.
func diagnose(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		err = pe.Err
	}
	hint := "agentctl doctor says what this host forbids"
	text := "user namespaces are not available"
	switch {
	case sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1" && os.Getuid() != 0:
		text = "user namespaces are restricted by AppArmor (kernel.apparmor_restrict_unprivileged_userns=1)"
		hint = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give agentctl-sandbox an AppArmor profile with the rule userns"
	case sysctl("user.max_user_namespaces") == "0":
		text = "user namespaces are switched off (user.max_user_namespaces=0)"
		hint = "sudo sysctl -w user.max_user_namespaces=10000"
	case sysctl("kernel.unprivileged_userns_clone") == "0" && os.Getuid() != 0:
		text = "user namespaces are for root only (kernel.unprivileged_userns_clone=0)"
		hint = "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		text = "there are as many user namespaces as this host allows (user.max_user_namespaces)"
		hint = "sudo sysctl -w user.max_user_namespaces=10000"
	case errors.Is(err, syscall.EPERM):
		text = "making a user namespace is forbidden, as it is inside most containers"
		hint = "let the container make user namespaces (a seccomp profile that allows clone and mount, an unmasked /proc), or declare it with AGENTCTL_OUTER_ISOLATION=container"
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC):
		text, hint = "agentctl-sandbox cannot be started", "run make build, or set AGENTCTL_LIBEXEC to the folder that holds "+Helper
	}
	return reason.New(reason.IsolationUnavailable, "build its sandbox: %s: %w", text, err).WithHint("%s", hint)
}

// sysctl reads a kernel setting; "" if there is none of that name.
func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Probe lists the parts of the containment as they are on this host now; nothing
// is taken from the cache.
func (l *Launcher) Probe(ctx context.Context) []Control {
	p := l.try(ctx)
	stands := Control{Name: "sandbox", Needed: true, OK: p.Missing == "", Why: "a program ran in a trial sandbox", Hint: p.Hint}
	if !stands.OK {
		stands.Why = p.Missing
	}
	return append([]Control{stands, userNamespaces(), landlock(p), binding(p), recording(), seccompControl()}, limits()...)
}

func userNamespaces() Control {
	c := Control{Name: "user namespaces", Needed: true, OK: true, Why: "user.max_user_namespaces=" + sysctl("user.max_user_namespaces")}
	fail := func(why, hint string) Control {
		c.OK, c.Why, c.Hint = false, why, hint
		return c
	}
	switch {
	case sysctl("user.max_user_namespaces") == "0":
		return fail("user.max_user_namespaces=0", "sudo sysctl -w user.max_user_namespaces=10000")
	case os.Getuid() == 0:
		return c
	case sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1":
		return fail("kernel.apparmor_restrict_unprivileged_userns=1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
	case sysctl("kernel.unprivileged_userns_clone") == "0":
		return fail("kernel.unprivileged_userns_clone=0", "sudo sysctl -w kernel.unprivileged_userns_clone=1")
	}
	return c
}

const landlockHint = "boot with landlock in the kernel's lsm= list (Linux 5.19 or newer)"

func landlock(p probed) Control {
	c := Control{Name: "landlock", OK: p.Landlock > 0, Why: fmt.Sprintf("ABI %d", p.Landlock)}
	switch {
	case c.OK:
	case p.Missing != "": // it is checked from inside
		c.Why = "not known: no sandbox could be built"
	default:
		c.Why, c.Hint = "not in force: the other layers hold without it", landlockHint
	}
	return c
}

func seccompControl() Control {
	c := Control{Name: "seccomp", Needed: true, OK: true, Why: "filters are available"}
	if b, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail"); err != nil || !bytes.Contains(b, []byte("kill_process")) {
		c.OK, c.Why, c.Hint = false, "the kernel has no seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER"
	}
	return c
}

// limits returns what enforces the limits of a tool: it creates a cgroup with
// all of them and removes it.
func limits() []Control {
	const hint = "run under a delegated cgroup v2, for example: systemd-run --user --scope -p Delegate=yes agentctl ..."
	left := spec.Limits{Memory: 1 << 30, Pids: 1000, CPU: 1000}
	newGroup(groupPlaces(), knobs(left), &left).remove()
	control := func(name string, cgroup bool, otherwise Control) Control {
		if cgroup {
			return Control{Name: name, OK: true, Why: "a cgroup of each sandbox"}
		}
		otherwise.Name = name
		return otherwise
	}
	pids := Control{OK: true, Why: "RLIMIT_NPROC, counted per sandbox"}
	if os.Getuid() == 0 {
		pids = Control{Why: "no delegated cgroup: not enforced on files of root, whose processes the kernel does not count", Hint: hint + ", or run agentctl as another user"}
	}
	return []Control{
		control("limits.memory", left.Memory == 0, Control{Why: "no delegated cgroup: bounds each process by itself (RLIMIT_DATA), not their sum; memory they share only in files of /tmp, /dev/shm and the home folder", Hint: hint}),
		control("limits.cpu", left.CPU == 0, Control{Why: "no delegated cgroup: not enforced", Hint: hint}),
		control("limits.pids", left.Pids == 0, pids),
	}
}
