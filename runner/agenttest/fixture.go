package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
)

// Bounds of the folder that a test begins with. It is copied for each case.
const (
	maxFixtureBytes   = 1 << 30
	maxFixtureEntries = 100_000
	// gitTime bounds each call of git.
	gitTime = 30 * time.Second
)

// fixtures makes the files that tests begin with, each once: a run works on a copy.
type fixtures struct {
	dir string

	mu   sync.Mutex
	made map[string]*fixture
}

type fixture struct {
	once sync.Once
	dir  string
	err  error
}

func newFixtures(dir string) *fixtures { return &fixtures{dir: dir, made: map[string]*fixture{}} }

// of returns the folder with the files of a workspace. Equal workspaces share one.
func (f *fixtures) of(ctx context.Context, w *v1alpha1.TestWorkspace) (string, error) {
	key, err := json.Marshal(w)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	one := f.made[string(key)]
	if one == nil {
		one = &fixture{dir: filepath.Join(f.dir, strconv.Itoa(len(f.made)+1), "workspace")}
		f.made[string(key)] = one
	}
	f.mu.Unlock()
	one.once.Do(func() { one.err = one.make(ctx, w) })
	return one.dir, one.err
}

func (f *fixture) make(ctx context.Context, w *v1alpha1.TestWorkspace) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if w.Source != nil {
		if err := f.copy(ctx, w.Source.Path); err != nil {
			return fmt.Errorf("copy %s: %w", shown(w.Source.Path), err)
		}
	}
	if err := f.write(w.Files); err != nil {
		return fmt.Errorf("write the files of the workspace: %w", err)
	}
	if w.Commit != "" {
		return f.commit(ctx, w.Commit)
	}
	return nil
}

func (f *fixture) copy(ctx context.Context, source string) error {
	used, err := fstree.Measure(ctx, source, maxFixtureEntries)
	switch {
	case err != nil:
		return err
	case used.Entries >= maxFixtureEntries:
		return fmt.Errorf("it has more than %d files and folders", maxFixtureEntries)
	case used.Bytes > maxFixtureBytes:
		return fmt.Errorf("it takes more than %d MiB", maxFixtureBytes>>20)
	}
	return os.CopyFS(f.dir, os.DirFS(source))
}

// write writes texts. Links in the folder that lead out of it are not followed.
func (f *fixture) write(files map[string]string) (err error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for name, text := range files {
		if dir := path.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// committed is when and by whom the commit is made: its id is the same each time.
const committed = "2026-01-01T12:00:00Z"

// commit makes a repository of the folder. Neither the configuration of the user nor a
// repository around the folder has an influence on it.
func (f *fixture) commit(ctx context.Context, message string) error {
	if _, err := os.Lstat(filepath.Join(f.dir, ".git")); err == nil {
		return errors.New("workspace.commit: the folder is a repository already")
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "--template="},
		{"add", "--all"},
		{"commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "--message=" + message},
	} {
		if err := f.git(ctx, args); err != nil {
			return fmt.Errorf("workspace.commit: git %s: %w", args[0], err)
		}
	}
	return nil
}

func (f *fixture) git(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, fmt.Errorf("it took longer than %s", gitTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"}, args)...) //nolint:gosec // arguments of our own, and a message behind its option
	cmd.Dir, cmd.WaitDelay = f.dir, time.Second
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(f.dir),
		"GIT_AUTHOR_NAME=agentctl", "GIT_AUTHOR_EMAIL=agentctl@localhost", "GIT_AUTHOR_DATE=" + committed,
		"GIT_COMMITTER_NAME=agentctl", "GIT_COMMITTER_EMAIL=agentctl@localhost", "GIT_COMMITTER_DATE=" + committed,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if text := strings.TrimSpace(out.String()); err != nil && text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// shown is a path as people read it: relative to the current folder, if it is below it.
func shown(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
