package export

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/workspace"
)

// Options name the run and the file. State, Ref and File are required.
type Options struct {
	// State is the folder that holds the run, Ref names it as journal.FindRun takes it.
	State, Ref string
	// File is written; it must not exist unless Replace is set.
	File    string
	Replace bool
	// Exclude are globs of files to leave out, as those of a Workspace.
	Exclude []string
	// Git takes .git in as well. WithoutFiles takes no files in: only what is in the journal.
	Git, WithoutFiles bool
	// Version of the program, Now the clock; default time.Now.
	Version string
	Now     func() time.Time
}

// Written is an export that was written.
type Written struct {
	Manifest
	// File and its Bytes; SHA256 in hex.
	File   string
	Bytes  int64
	SHA256 string
	// Files counts those of the run.
	Files int
}

// Write exports a run that no process executes. Files whose names say that they hold secrets
// are left out, and so are their contents at any time. The error is a *SecretError, and
// nothing is written, if the value of a secret that is known would be in it.
func Write(ctx context.Context, o Options) (_ *Written, err error) {
	for _, g := range o.Exclude {
		if g == "" || !doublestar.ValidatePattern(strings.TrimSuffix(g, "/")) {
			return nil, reason.Usagef("--exclude %q is not a glob", g)
		}
	}
	found, err := journal.FindRun(o.State, o.Ref)
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	if journal.Held(found.Dir) {
		return nil, reason.Usagef("run %s cannot be exported: a process executes it", found.ID).
			WithHint("wait until it has ended (agentctl wait run/" + found.ID + "), or stop it: agentctl cancel run/" + found.ID)
	}
	at, err := moment.Find(ctx, found, "")
	if err != nil {
		return nil, err
	}
	if p := at.Run.Started.Parent; p != nil {
		return nil, reason.Usagef("run %s was started by a call of run %s", found.ID, p.Run).WithHint("export that one, which takes this one with it: agentctl export run/" + p.Root)
	}
	w := &writer{Options: o, found: found, at: at, m: Manifest{Format: format, Run: found.ID, Version: o.Version, Excluded: append([]string{}, o.Exclude...), Secrets: []string{}, Git: o.Git}}
	if w.Now == nil {
		w.Now = time.Now
	}
	written, err := w.write(ctx)
	if _, usage := errors.AsType[*reason.UsageError](err); err != nil && !usage {
		err = fmt.Errorf("export run %s: %w", found.ID, err)
	}
	return written, err
}

type writer struct {
	Options
	found journal.Found
	at    *moment.Moment
	m     Manifest
	scan  *scanner
	out   *tar.Writer
	files int
	// kept are the blobs with contents of files that are in the export, secret those of files
	// that are not.
	kept, secret map[string]bool
}

func (w *writer) write(ctx context.Context) (_ *Written, err error) {
	if _, err := os.Lstat(w.File); err == nil && !w.Replace {
		return nil, reason.Usagef("%s is there already", w.File).WithHint("name another file, or replace it with --force")
	}
	if w.m.Seq, w.m.Hash, err = journal.Head(w.found.Dir); err != nil {
		return nil, err
	}
	below, err := w.below()
	if err != nil {
		return nil, err
	}
	if w.scan, err = w.scanner(ctx, below); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "agentctl-export-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fstree.Remove(temp)) }()
	files, err := w.copyFiles(ctx, filepath.Join(temp, filesName))
	if err != nil {
		return nil, err
	}
	if err := w.contents(ctx, below); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(filepath.Dir(w.File), ".export-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	sum, err := w.pack(ctx, out, below, files, filepath.Join(temp, filesName))
	size, other := out.Seek(0, io.SeekEnd)
	if err = errors.Join(err, other, out.Sync(), out.Close()); err != nil {
		return nil, err
	}
	if err := w.scan.found(w.found.ID); err != nil {
		return nil, err
	}
	if err := w.publish(out.Name()); err != nil {
		return nil, err
	}
	return &Written{Manifest: w.m, File: w.File, Bytes: size, SHA256: sum, Files: w.files}, nil
}

// publish gives a finished file its name.
func (w *writer) publish(temp string) error {
	if w.Replace {
		return os.Rename(temp, w.File)
	}
	if err := os.Link(temp, w.File); err != nil { // which does not replace a file
		return err
	}
	return os.Remove(temp)
}

// below are the run and those below it.
func (w *writer) below() ([]journal.Found, error) {
	all, err := journal.List(w.State)
	if err != nil {
		return nil, err
	}
	list := []journal.Found{w.found}
	for i := 0; i < len(list); i++ {
		for _, f := range all {
			if f.Parent == list[i].ID {
				list = append(list, f)
			}
		}
	}
	for _, f := range list {
		w.m.Runs = append(w.m.Runs, f.ID)
	}
	return list, nil
}

// copyFiles copies the files of the run as they are, so that what is written is of one
// moment, and returns them. nil is a run without files.
func (w *writer) copyFiles(ctx context.Context, dir string) (_ *workspace.Snapshot, err error) {
	from := w.at.Folder()
	if w.WithoutFiles || from == "" {
		w.m.Git = false
		return nil, nil //nolint:nilnil // there are none
	}
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return nil, reason.Usagef("run %s cannot be exported with its files: %s is gone", w.found.ID, from).WithHint("export what is in its journal: --without-files")
	}
	var declared struct { // of the stored plan, which has much more
		Exclude   []string `json:"exclude"`
		SizeLimit int64    `json:"sizeLimit"`
	}
	b, err := journal.ReadBlob(w.found.Dir, w.at.Run.Started.Plan)
	if err == nil {
		err = json.Unmarshal(b, &declared)
	}
	if err != nil {
		return nil, fmt.Errorf("read its plan: %w", err)
	}
	if w.Git {
		if err := noCredentials(from); err != nil {
			return nil, err
		}
	}
	exclude := slices.Concat(declared.Exclude, w.Exclude)
	if !w.Git {
		exclude = append(exclude, ".git")
	}
	ws, err := workspace.Prepare(ctx, workspace.Spec{Strategy: v1alpha1.StrategyCopy, From: from, Source: from, Dir: dir, Exclude: exclude, SizeLimit: declared.SizeLimit, Skip: []string{w.State}})
	if err != nil {
		return nil, err
	}
	if err = errors.Join(ws.Ready(ctx), ws.Leave()); err != nil {
		return nil, err
	}
	w.m.HasFiles = true
	for _, e := range ws.Base().Entries {
		if e.Type != workspace.TypeDir && w.m.LeavesOut(string(e.Path)) {
			w.m.Secrets = append(w.m.Secrets, string(e.Path))
		}
	}
	return ws.Base(), nil
}

// contents finds the blobs with contents of files that are left out.
func (w *writer) contents(ctx context.Context, below []journal.Found) error {
	w.kept, w.secret = map[string]bool{}, map[string]bool{}
	for _, f := range below {
		for e, err := range journal.Read(ctx, f.Dir, 0) {
			if err != nil {
				return err
			}
			entries, err := recorded(f.Dir, e.Data)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.Type != workspace.TypeFile {
					continue
				}
				if w.m.LeavesOut(string(e.Path)) {
					w.secret[e.Hash] = true
				} else {
					w.kept[e.Hash] = true
				}
			}
		}
	}
	return nil
}

// pack writes the tar, and returns its hash in hex.
func (w *writer) pack(ctx context.Context, out io.Writer, below []journal.Found, files *workspace.Snapshot, dir string) (string, error) {
	sum := sha256.New()
	zipped := gzip.NewWriter(io.MultiWriter(out, sum))
	w.out = tar.NewWriter(zipped)
	w.m.Time = w.Now().UTC().Truncate(time.Second)
	b, err := json.Marshal(w.m)
	if err == nil {
		err = w.add(ctx, &tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(b)), ModTime: w.m.Time, Typeflag: tar.TypeReg}, bytes.NewReader(b))
	}
	for _, f := range below {
		if err == nil {
			err = w.run(ctx, f)
		}
	}
	if err == nil && files != nil {
		err = w.tree(ctx, files, dir)
	}
	err = errors.Join(err, w.out.Close(), zipped.Close())
	return hex.EncodeToString(sum.Sum(nil)), err
}

// run writes the journal and the blobs of a run.
func (w *writer) run(ctx context.Context, f journal.Found) error {
	names, err := journal.Files(f.Dir, audit.FileName)
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, "blobs/"); ok && w.secret["sha256:"+id] && !w.kept["sha256:"+id] {
			continue
		}
		if err := w.file(ctx, f.Dir, name, path.Join(runsName, f.ID, name), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// tree writes the files of the run.
func (w *writer) tree(ctx context.Context, files *workspace.Snapshot, dir string) error {
	if err := w.add(ctx, &tar.Header{Name: filesName + "/", Mode: 0o700, ModTime: w.m.Time, Typeflag: tar.TypeDir}, nil); err != nil {
		return err
	}
	for _, e := range files.Entries {
		name := path.Join(filesName, string(e.Path))
		var err error
		switch {
		case e.Type == workspace.TypeDir:
			err = w.add(ctx, &tar.Header{Name: name + "/", Mode: int64(e.Mode), ModTime: w.m.Time, Typeflag: tar.TypeDir}, nil)
		case w.m.LeavesOut(string(e.Path)):
		case e.Type == workspace.TypeLink:
			w.files++
			err = w.add(ctx, &tar.Header{Name: name, Linkname: string(e.Target), Mode: 0o777, ModTime: w.m.Time, Typeflag: tar.TypeSymlink}, nil)
		default:
			w.files++
			err = w.file(ctx, dir, string(e.Path), name, int64(e.Mode))
		}
		if err != nil {
			return err
		}
	}
	if !w.m.Git {
		return nil
	}
	return w.repository(ctx, dir)
}

// repository writes .git, which no list of files has.
func (w *writer) repository(ctx context.Context, dir string) error {
	return filepath.WalkDir(filepath.Join(dir, ".git"), func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && filepath.Base(at) == ".git" {
			w.m.Git = false
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		name := path.Join(filesName, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			return w.add(ctx, &tar.Header{Name: name + "/", Mode: 0o700, ModTime: w.m.Time, Typeflag: tar.TypeDir}, nil)
		case d.Type().IsRegular():
			return w.file(ctx, dir, rel, name, 0o600)
		}
		return nil // a link in .git is of no use elsewhere
	})
}

// file writes a file that is searched for secrets on the way.
func (w *writer) file(ctx context.Context, dir, name, as string, mode int64) (err error) {
	f, err := statedir.OpenFile(filepath.Join(dir, filepath.FromSlash(name)), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.add(ctx, &tar.Header{Name: as, Mode: mode, Size: info.Size(), ModTime: info.ModTime(), Typeflag: tar.TypeReg}, f)
}

func (w *writer) add(ctx context.Context, h *tar.Header, content io.Reader) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w.scan.text(h.Name, h.Name+"\n"+h.Linkname)
	if err := w.out.WriteHeader(h); err != nil {
		return fmt.Errorf("write %s: %w", h.Name, err)
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(w.out, w.scan.reader(h.Name, io.LimitReader(content, h.Size)))
	if err != nil {
		return fmt.Errorf("write %s: %w", h.Name, err)
	}
	return cmp.Or(err, w.out.Flush())
}
