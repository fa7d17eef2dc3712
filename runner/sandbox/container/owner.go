package container

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// base keeps names short: they are part of the paths of sockets.
const base = 36

// Self names this process so that no other ever has the same name: the boot,
// the namespace of its process id, the id, and when it was started.
func Self() (string, error) { return owner(os.Getpid()) }

func owner(pid int) (string, error) {
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	ns, err := pidNamespace()
	if err != nil {
		return "", err
	}
	start, err := startTime(pid)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{boot, ns, strconv.FormatInt(int64(pid), base), start}, "-"), nil
}

// gone reports whether an owner has certainly ended. An owner in another
// process namespace cannot be checked from here while its boot lasts. A suffix
// of the name, as a folder has, is ignored.
func gone(owner string) bool {
	part := strings.Split(owner, "-")
	if len(part) < 4 {
		return false // not a name of this runtime: never swept
	}
	pid, err := strconv.ParseInt(part[2], base, 32)
	if err != nil || pid <= 0 {
		return false
	}
	boot, err := bootID()
	if err != nil {
		return false
	}
	if part[0] != boot {
		return true
	}
	if ns, err := pidNamespace(); err != nil || part[1] != ns {
		return false
	}
	start, err := startTime(int(pid))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	return err == nil && start != part[3]
}

// bootID is the beginning of the kernel's id of this boot.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return strings.ReplaceAll(string(bytes.TrimSpace(text)), "-", "")[:8], nil
}

// pidNamespace is the number of the namespace process ids are counted in.
func pidNamespace() (string, error) {
	link, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return shorten(strings.Trim(link, "pid:[]"))
}

// startTime is when a process was started, in clock ticks since the boot: a
// process id alone is given out again.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("name process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything; field 3 follows it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("name process %d: it has ended: %w", pid, os.ErrNotExist)
	}
	return shorten(fields[19])
}

func shorten(number string) (string, error) {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", fmt.Errorf("name a process: %w", err)
	}
	return strconv.FormatUint(n, base), nil
}
