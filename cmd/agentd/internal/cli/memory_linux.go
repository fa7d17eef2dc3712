package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// fixedAddress is where a program begins that the linker has given its addresses.
// One that is placed elsewhere had to be changed in memory, and what was changed
// must not be dropped.
const fixedAddress = 0x400000

// dropProgram takes the pages of the program itself out of this process that can be
// read again from its file. Most of them were needed by the start alone; what is
// needed comes back by itself, from the system's cache. Where that is not possible
// nothing happens.
func dropProgram() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	first := true
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var begin, end uintptr
		var perms string
		if !strings.HasSuffix(lines.Text(), " "+exe) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &begin, &end, &perms); err != nil || first && begin != fixedAddress {
			return
		}
		first = false
		if perms != "r-xp" && perms != "r--p" { // what can be written to is nowhere else
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED) // or it stays
	}
}
