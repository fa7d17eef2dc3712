package embedded

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockedBy asks the system which process holds the lock of a file; 0: unknown, or
// in another namespace of processes.
func lockedBy(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // nothing was written
	inode := fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
		fields, pid := strings.Fields(lines.Text()), 0
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != inode {
			continue
		}
		if _, err := fmt.Sscan(fields[4], &pid); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
