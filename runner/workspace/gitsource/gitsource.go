// Package gitsource clones the repository that a run works on, and runs nothing that the repository brings.
package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/giturl"
)

// lookAgain is the time between two looks at how much a clone takes.
const lookAgain = 200 * time.Millisecond

// Options are what is cloned, and where.
type Options struct {
	// Source is the declared repository.
	Source *v1alpha1.GitSource
	// Password goes to the server of the repository, and to no other; the zero Value is none.
	Password secret.Value
	// Dir is the folder of the clone. It must not exist.
	Dir string
	// Skip are folders of this host that are never part of a workspace.
	Skip []string
	// SizeLimit bounds the bytes of the history and of the files, each; MaxFiles the files.
	// Defaults are those of package workspace.
	SizeLimit int64
	MaxFiles  int
	// Progress is called with what git reports, if it takes long. Optional.
	Progress func(text string)
}

// Clone is a repository that was cloned.
type Clone struct {
	// Commit whose files are in the folder.
	Commit string
	// Notes are what a person should know: parts of the repository that are not there.
	Notes []string
}

// New clones a repository and writes the files of the commit that the ref leads to. It
// leaves no folder where it fails. No hook, filter, submodule, template or configuration
// is used, but the clone's own that git writes itself; redirects are not followed.
//
//	the repository                      error
//	is cloned                           nil
//	must not be named like this         *reason.UsageError
//	asks for credentials, refuses them  reason CredentialMissing, CredentialRejected
//	is larger than the limits           wraps workspace.ErrTooLarge
//	any other                           reason WorkspaceUnavailable
func New(ctx context.Context, o Options) (*Clone, error) {
	if o.SizeLimit <= 0 {
		o.SizeLimit = workspace.DefaultSizeLimit
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = workspace.MaxFiles
	}
	address, err := giturl.Parse(o.Source.URL)
	if err == nil {
		err = giturl.CheckRef(o.Source.Ref)
	}
	if err != nil {
		return nil, reason.Usagef("source.git: %w", err)
	}
	if address.Scheme == "file" {
		for _, dir := range []string{address.Path, elsewhere(address.Path)} {
			if dir == "" {
				continue
			}
			if err := workspace.Usable(workspace.Spec{Source: dir, Skip: o.Skip}); err != nil {
				return nil, reason.Usagef("source.git: %w", err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o700); err != nil {
		return nil, reason.New(reason.WorkspaceUnavailable, "clone %s: %w", o.Source.URL, err)
	}
	if _, err := os.Lstat(o.Dir); !errors.Is(err, fs.ErrNotExist) { // what is there is not ours to remove
		return nil, reason.New(reason.WorkspaceUnavailable, "clone %s: %s exists already", o.Source.URL, o.Dir)
	}
	g := &git{o: &o, address: address}
	c, err := g.clone(ctx)
	if err != nil {
		return nil, errors.Join(g.explain(ctx, err), fstree.Remove(o.Dir))
	}
	return c, nil
}

// maxPointer bounds a file called .git.
const maxPointer = 4 << 10

// elsewhere is the folder that the .git of a repository leads to, if that is a file or a
// link; "" where it is a folder, or not there.
func elsewhere(dir string) string {
	dot := filepath.Join(dir, ".git")
	info, err := os.Lstat(dot)
	switch {
	case err != nil || info.IsDir():
		return ""
	case !info.Mode().IsRegular() || info.Size() > maxPointer:
		return dot
	}
	text, err := os.ReadFile(dot)
	to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
	if err != nil || to == "" {
		return dot // no folder: it is refused
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return to
}

func (g *git) clone(ctx context.Context) (*Clone, error) {
	if err := g.bounded(ctx, g.fetch); err != nil {
		return nil, err
	}
	head := "HEAD"
	if giturl.IsDirect(g.o.Source.Ref) {
		head = "FETCH_HEAD"
	}
	out, err := g.output(ctx, "rev-parse", "--verify", "--quiet", head+"^{commit}")
	commit := strings.TrimSpace(string(out))
	if err != nil || !giturl.IsCommit(commit) {
		return nil, errors.New("it holds no commit there")
	}
	c := &Clone{Commit: commit}
	if err := g.fits(ctx, c); err != nil {
		return nil, err
	}
	// A branch stays checked out, so that git in the clone knows where it is.
	checkout := []string{"checkout", "--quiet", "--force"}
	if head == "FETCH_HEAD" {
		checkout = append(checkout, "--detach", commit)
	}
	if err := g.run(ctx, append(checkout, "--")...); err != nil {
		return nil, err
	}
	if storesElsewhere(filepath.Join(g.o.Dir, ".gitattributes")) {
		c.Notes = append(c.Notes, "files that Git LFS stores elsewhere are not fetched: their pointers are there instead")
	}
	return c, nil
}

// fetch gets the history, without a file of it.
func (g *git) fetch(ctx context.Context) error {
	ref, dir := g.o.Source.Ref, g.o.Dir
	common := []string{"--progress", "--no-tags"}
	if d := g.depth(); d > 0 {
		common = append(common, "--depth="+strconv.Itoa(d))
	}
	if !giturl.IsDirect(ref) {
		args := append([]string{"clone", "--no-checkout", "--single-branch", "--no-recurse-submodules", "--template=", "--origin=origin"}, common...)
		if ref != "" {
			args = append(args, "--branch="+ref)
		}
		return g.run(ctx, append(args, "--", g.o.Source.URL, dir)...)
	}
	if err := g.run(ctx, "init", "--quiet", "--template=", "--", dir); err != nil {
		return err
	}
	if err := g.run(ctx, "remote", "add", "--", "origin", g.o.Source.URL); err != nil {
		return err
	}
	return g.run(ctx, append(append([]string{"fetch", "--no-recurse-submodules"}, common...), "--", "origin", ref)...)
}

func (g *git) depth() int {
	if d := g.o.Source.Depth; d != nil {
		return int(*d)
	}
	return 1
}

// bounded ends work when the clone takes more of the disk than allowed: how large a
// history is, only its end shows.
func (g *git) bounded(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if err := g.tooLarge(ctx); err != nil {
					stop(err)
					return
				}
			}
		}
	}()
	err := work(ctx)
	close(done)
	<-watched
	if cause := context.Cause(ctx); errors.Is(cause, workspace.ErrTooLarge) {
		err = cause
	}
	if err == nil {
		err = g.tooLarge(ctx) // between the last look and the end
	}
	stop(nil)
	return err
}

func (g *git) tooLarge(ctx context.Context) error {
	used, err := fstree.Measure(ctx, g.o.Dir, g.o.MaxFiles)
	if err != nil || used.Bytes <= g.o.SizeLimit {
		return nil //nolint:nilerr // the folder is not there yet, or git replaces files in it
	}
	return fmt.Errorf("its history takes more than the limit of %d bytes: %w", g.o.SizeLimit, workspace.ErrTooLarge)
}
