package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropPages takes pages out of this process that can be read again from their files:
// those of the program, most of which were needed by the start alone, and those of
// the database, which maps its file with all its pages. What is needed comes back by
// itself, from the system's cache. Where that is not possible nothing happens.
func dropPages() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var begin, end uintptr
	droppable := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var b, e uintptr
		var perms string
		text := lines.Text()
		if _, err := fmt.Sscanf(text, "%x-%x %s", &b, &e, &perms); err == nil {
			begin, end = b, e
			droppable = fromFile(text, perms, exe)
			continue
		}
		// A page that this process has changed, as a linker that is external has some
		// changed at the start, is nowhere else.
		if changed, ok := strings.CutPrefix(text, "Anonymous:"); ok && droppable && strings.Join(strings.Fields(changed), " ") == "0 kB" {
			// Else the system maps 2 MB for each page that comes back.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_NOHUGEPAGE) // not every system has huge pages
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED)   // or it stays
		}
	}
}

// fromFile reports whether a mapping cannot be written to, and is one of the program
// or one that is shared with a file.
func fromFile(text, perms, exe string) bool {
	switch perms {
	case "r-xp", "r--p":
		return strings.HasSuffix(text, " "+exe)
	case "r--s":
		return strings.Contains(text, " /")
	}
	return false
}
