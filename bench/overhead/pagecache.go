package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pageCache can make the kernel forget files.
type pageCache struct {
	files []string
	// all drops the pages of the whole machine.
	all *os.File
	how string
}

// dropCaches is the kernel's switch; only root may throw it.
const dropCaches = "/proc/sys/vm/drop_caches"

// newPageCache writes the files out, because only clean pages can be dropped.
func newPageCache(files []string) (*pageCache, error) {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = f.Sync()
		_ = f.Close() // only read
		if err != nil {
			return nil, fmt.Errorf("write out %s: %w", name, err)
		}
	}
	c := &pageCache{files: files, how: dropCaches + " of the whole machine"}
	var err error
	if c.all, err = os.OpenFile(dropCaches, os.O_WRONLY, 0); err != nil {
		// Whoever is not root can still ask for single files.
		c.all, c.how = nil, fmt.Sprintf("posix_fadvise of %d programs, other files stayed in memory", len(files))
	}
	return c, nil
}

func (c *pageCache) drop() error {
	if c.all != nil {
		// 3: pages, and the names and inodes that lead to them.
		_, err := c.all.WriteString("3")
		return err
	}
	for _, name := range c.files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		_ = f.Close() // only read
		if err != nil {
			return fmt.Errorf("drop the pages of %s: %w", name, err)
		}
	}
	return nil
}

func (c *pageCache) close() {
	if c.all != nil {
		_ = c.all.Close() // the kernel has taken what was written
	}
}
