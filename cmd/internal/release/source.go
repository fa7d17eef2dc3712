package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is a clean checkout of the commit that is released.
type source struct {
	Dir, Commit string
	// Time is that of the commit: the time of every file of the release.
	Time time.Time
}

// checkOut clones the HEAD of a repository and gives the clone the version's tag. Nothing
// that is not committed can get into a release, and the go command stamps what it builds
// there with the version and the commit.
func checkOut(ctx context.Context, repository, dir, version string) (*source, error) {
	commit, err := git(ctx, repository, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, fmt.Errorf("find the commit to release: %w", err)
	}
	if tagged, err := git(ctx, repository, "rev-parse", "--quiet", "--verify", "refs/tags/"+version+"^{commit}"); err == nil && tagged != commit {
		return nil, fmt.Errorf("tag %s is at commit %s, and HEAD is %s: check out the tag, or name another version", version, tagged, commit)
	}
	for _, args := range [][]string{
		{"clone", "--quiet", "--shared", "--no-tags", "--no-checkout", "--", ".", dir},
		{"-C", dir, "-c", "advice.detachedHead=false", "-c", "core.autocrlf=false", "checkout", "--quiet", "--detach", commit},
		{"-C", dir, "-c", "tag.gpgSign=false", "tag", version, commit},
	} {
		if _, err := git(ctx, repository, args...); err != nil {
			return nil, fmt.Errorf("check out %s: %w", commit, err)
		}
	}
	// The go command writes down the sums of what only go.work needs, which is no change.
	if err := os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte("/go.work.sum\n"), 0o644); err != nil {
		return nil, fmt.Errorf("check out %s: %w", commit, err)
	}
	seconds, err := git(ctx, dir, "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the time of commit %s: %w", commit, err)
	}
	return &source{Dir: dir, Commit: commit, Time: time.Unix(at, 0).UTC()}, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), explain(cmd, err)
}

// explain adds to an error of a command what it has said.
func explain(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
}
