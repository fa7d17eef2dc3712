package gitsource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/workspace"
)

// maxEntry bounds one line of a listed tree: a path has 4096 bytes at most.
const maxEntry = 8192

// maxAttributes bounds what is read of .gitattributes.
const maxAttributes = 64 << 10

// fits refuses a commit whose files are too many or too large before one of them is
// written: a few kilobytes of history can stand for terabytes.
func (g *git) fits(ctx context.Context, c *Clone) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	count := &counted{maxFiles: g.o.MaxFiles, maxBytes: g.o.SizeLimit}
	err := g.stream(ctx, func(r io.Reader) error {
		err := count.read(r)
		if err != nil {
			cancel() // git need not list the rest
		}
		return err
	}, "ls-tree", "-r", "-l", "-z", "--full-tree", c.Commit)
	if err != nil {
		return err
	}
	if count.submodules > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d submodules are not fetched: their folders are empty", count.submodules))
	}
	return nil
}

// counted are the files of a tree.
type counted struct {
	maxFiles          int
	maxBytes          int64
	files, submodules int
	bytes             int64
}

// read counts entries of git ls-tree -r -l -z: mode, type, object, size, a tab and the path.
func (c *counted) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxEntry), maxEntry)
	lines.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if end && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		about, _, _ := strings.Cut(lines.Text(), "\t")
		fields := strings.Fields(about)
		if len(fields) != 4 {
			return errors.New("git listed its files in another form")
		}
		if fields[1] == "commit" {
			c.submodules++
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return fmt.Errorf("git listed its files in another form: %w", err)
		}
		c.files++
		c.bytes += size
		switch {
		case c.files > c.maxFiles:
			return fmt.Errorf("it has more than %d files: %w", c.maxFiles, workspace.ErrTooLarge)
		case size > c.maxBytes || c.bytes > c.maxBytes:
			return fmt.Errorf("its files take more than the limit of %d bytes: %w", c.maxBytes, workspace.ErrTooLarge)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("list its files: %w", err)
	}
	return nil
}

// storesElsewhere reports whether a file of attributes leaves contents to Git LFS.
func storesElsewhere(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxAttributes))
	return err == nil && bytes.Contains(text, []byte("filter=lfs"))
}
