package fstree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Usage is what a tree takes on the disk.
type Usage struct {
	// Bytes are the blocks of all files and folders. A file with several names
	// counts once, an entry at least 512 bytes.
	Bytes int64
	// Entries are the files and folders.
	Entries int
	// Partial reports that something could not be read or was moved meanwhile: the
	// tree takes at least this much.
	Partial bool
}

// entrySize is the least that an entry counts: a small file may be stored in its inode.
const entrySize = 512

// level is a folder on the way down.
type level struct {
	id   inode
	dirs []string
}

// Measure adds up the disk usage of a tree. It stops after most entries, for
// which Partial is set; 0: no bound. Other file systems that are mounted in it
// do not count.
func Measure(ctx context.Context, dir string, most int) (Usage, error) {
	// The folder itself may be named by a link.
	fd, err := unix.Open(dir, openDir&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return Usage{}, fmt.Errorf("measure %s: %w", dir, err)
	}
	m := &measure{ctx: ctx, most: most, seen: map[inode]bool{}, buf: make([]byte, direntSize)}
	defer func() { _ = unix.Close(m.fd) }()
	m.fd = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Usage{}, fmt.Errorf("measure %s: %w", dir, err)
	}
	m.dev = inodeOf(&st).dev
	m.count(&st)
	if err := m.walk(inodeOf(&st)); err != nil {
		return m.Usage, fmt.Errorf("measure %s: %w", dir, err)
	}
	return m.Usage, nil
}

type measure struct {
	Usage
	ctx  context.Context //nolint:containedctx // used for one walk
	most int
	dev  uint64
	seen map[inode]bool
	buf  []byte
	// fd is the folder that the walk is in, the last of levels.
	fd     int
	levels []level
}

func (m *measure) walk(root inode) error {
	m.levels = []level{{root, m.read(m.fd)}}
	for {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if m.most > 0 && m.Entries >= m.most {
			m.Partial = true
			return nil
		}
		top := &m.levels[len(m.levels)-1]
		if n := len(top.dirs); n > 0 {
			name := top.dirs[n-1]
			top.dirs = top.dirs[:n-1]
			m.enter(name)
			continue
		}
		if len(m.levels) == 1 {
			return nil
		}
		if !m.leave() {
			m.Partial = true
			return nil
		}
	}
}

// enter measures a folder, and descends into it if it has subfolders.
func (m *measure) enter(name string) {
	fd, err := unix.Openat(m.fd, name, openDir, 0)
	if err != nil {
		m.Partial = m.Partial || !errors.Is(err, unix.ENOENT)
		return
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || inodeOf(&st).dev != m.dev {
		_ = unix.Close(fd)
		return
	}
	dirs := m.read(fd)
	if len(dirs) == 0 {
		_ = unix.Close(fd)
		return
	}
	_ = unix.Close(m.fd)
	m.fd = fd
	m.levels = append(m.levels, level{inodeOf(&st), dirs})
}

// leave goes back to the parent, unless the folder was moved in the meantime.
func (m *measure) leave() bool {
	m.levels = m.levels[:len(m.levels)-1]
	fd, err := unix.Openat(m.fd, "..", openDir, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(m.fd)
	m.fd = fd
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && inodeOf(&st) == m.levels[len(m.levels)-1].id
}

// read counts the entries of a folder and returns the folders among them.
func (m *measure) read(fd int) (dirs []string) {
	for {
		names, err := readNames(fd, m.buf)
		if err != nil {
			m.Partial = true
		}
		if len(names) == 0 {
			return dirs
		}
		for _, name := range names {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				m.Partial = m.Partial || !errors.Is(err, unix.ENOENT)
				continue
			}
			m.count(&st)
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				dirs = append(dirs, name)
			}
		}
		if m.ctx.Err() != nil || m.most > 0 && m.Entries >= m.most {
			return dirs
		}
	}
}

func (m *measure) count(st *unix.Stat_t) {
	m.Entries++
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 {
		if id := inodeOf(st); m.seen[id] {
			m.Bytes += entrySize
			return
		} else { //nolint:revive // the name is used in both branches
			m.seen[id] = true
		}
	}
	m.Bytes += max(st.Blocks*512, entrySize)
}
