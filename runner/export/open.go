package export

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
)

// Opened is an export that was unpacked into a temporary folder. Who opens it closes it.
type Opened struct {
	Manifest
	// State is a state folder with the run and those below it. Files is the folder with the
	// files of the run, "" if the export has none.
	State, Files string
}

// Open unpacks an export. Nothing in it is executed, no file is written outside the folder,
// and links are made as they are and never followed. The errors are *reason.UsageError.
func Open(ctx context.Context, file string) (_ *Opened, err error) {
	wrap := func(err error) error { return &reason.UsageError{Err: fmt.Errorf("open export %s: %w", file, err)} }
	info, err := os.Stat(file)
	if err != nil {
		return nil, wrap(err)
	}
	if !info.Mode().IsRegular() {
		return nil, wrap(errors.New("it is not a regular file"))
	}
	in, err := os.Open(file) //nolint:gosec // the user names the file
	if err != nil {
		return nil, wrap(err)
	}
	defer in.Close() //nolint:errcheck // nothing was written
	dir, err := os.MkdirTemp("", "agentctl-export-")
	if err != nil {
		return nil, wrap(err)
	}
	o := &Opened{State: dir}
	if err := o.unpack(ctx, in); err != nil {
		return nil, wrap(errors.Join(err, o.Close()))
	}
	return o, nil
}

// Close removes the folder.
func (o *Opened) Close() error { return fstree.Remove(o.State) }

func (o *Opened) unpack(ctx context.Context, in io.Reader) (err error) {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("it is not an export of agentctl: %w", err)
	}
	root, err := os.OpenRoot(o.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u := &unpacking{ctx: ctx, root: root, links: map[string]bool{}, in: tar.NewReader(&bounded{zipped, maxBytes + maxEntries*1024})}
	if o.Manifest, err = u.manifest(); err != nil {
		return err
	}
	if err := u.entries(&o.Manifest); err != nil {
		return err
	}
	if o.HasFiles {
		o.Files = filepath.Join(o.State, filesName)
		if err := root.MkdirAll(filesName, 0o700); err != nil {
			return err
		}
	}
	seq, hash, err := journal.Head(journal.Dir(o.State, o.Run))
	if err != nil {
		return err
	}
	if seq != o.Seq || hash != o.Hash {
		return fmt.Errorf("its journal ends with event %d, and it says %d: it was changed", seq, o.Seq)
	}
	return nil
}

type unpacking struct {
	ctx  context.Context //nolint:containedctx // used for one file
	root *os.Root
	in   *tar.Reader
	// folders get their modes last: a folder that cannot be written to is filled before.
	folders []madeFolder
	// links are the links so far: nothing is below one.
	links map[string]bool
}

type madeFolder struct {
	name string
	mode os.FileMode
}

// manifest reads the first entry.
func (u *unpacking) manifest() (m Manifest, err error) {
	h, err := u.in.Next()
	if err != nil || h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return m, errors.Join(errors.New("it is not an export of agentctl: "+manifestName+" is not its first file"), err)
	}
	if h.Size > maxManifest {
		return m, fmt.Errorf("%s has more than %d bytes", manifestName, maxManifest)
	}
	if err := json.NewDecoder(io.LimitReader(u.in, h.Size)).Decode(&m); err != nil {
		return m, fmt.Errorf("read %s: %w", manifestName, err)
	}
	return m, m.check()
}

func (u *unpacking) entries(m *Manifest) error {
	left := int64(maxBytes)
	for n := 0; ; n++ {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return u.modes()
		}
		if err == nil {
			err = context.Cause(u.ctx)
		}
		if err == nil && n >= maxEntries {
			err = fmt.Errorf("it holds more than %d files", maxEntries)
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		if left -= h.Size; h.Size < 0 || left < 0 {
			return fmt.Errorf("it holds more than %d bytes", int64(maxBytes))
		}
		if !filepath.IsLocal(name) || path.Clean(name) != name || !m.expects(name, h.Typeflag) {
			return fmt.Errorf("%.200q is nothing that an export holds", h.Name)
		}
		if err := u.entry(name, h); err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

// expects reports whether a path is one of an export.
func (m *Manifest) expects(name string, kind byte) bool {
	if name == filesName || strings.HasPrefix(name, filesName+"/") {
		return m.HasFiles && (kind == tar.TypeReg || kind == tar.TypeSymlink || kind == tar.TypeDir)
	}
	if kind != tar.TypeReg {
		return false
	}
	for _, run := range m.Runs {
		if journal.OfRun(name, path.Join(runsName, run), audit.FileName) {
			return true
		}
	}
	return false
}

func (u *unpacking) entry(name string, h *tar.Header) error {
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if u.links[up] {
			return errors.New("it is below a link")
		}
	}
	if h.Typeflag == tar.TypeDir {
		u.folders = append(u.folders, madeFolder{name, os.FileMode(h.Mode) & 0o777}) //nolint:gosec // nine bits
		return u.root.MkdirAll(name, 0o700)
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		u.links[name] = true
		return u.root.Symlink(h.Linkname, name)
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(name, filesName+"/") {
		mode = os.FileMode(h.Mode) & 0o777 //nolint:gosec // nine bits
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, u.in)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// modes gives the folders the modes that they had; their owner may always use them.
func (u *unpacking) modes() error {
	for _, f := range u.folders {
		if err := u.root.Chmod(f.name, f.mode|0o700); err != nil {
			return err
		}
	}
	return nil
}

// bounded is a reader that fails behind so many bytes: what decompresses to more is a bomb.
type bounded struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it holds more than %d bytes", int64(maxBytes))
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
