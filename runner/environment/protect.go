package environment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// guard lists the files that no isolated program may change or read: what git would
// run, the manifests of the run itself, the programs of its tools, and every file that
// a policy denies to read. All are absolute paths.
type guard struct {
	readOnly, masked []string
	// mounted are programs in folders that a tool mounts and may change.
	mounted []string
}

// protect returns the files of the run for calls, which wait until the guard is in
// force. Release ends the work in the background and waits for its end.
func (e *Environment) protect(ctx context.Context, judge Judge) (files func(context.Context) (string, error), release func()) {
	pool := e.host.pool
	if len(pool.Profiles) == 0 && !pool.Opened(v1alpha1.IsolationContainer) {
		return e.touch, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var g guard
	done := make(chan error, 1)
	go func() {
		err := e.guard(ctx, judge, &g)
		if err == nil {
			err = e.host.launcher.Protect(ctx, slices.Concat(g.readOnly, g.mounted), g.masked)
		}
		done <- err
	}()
	protected := sync.OnceValue(func() error { return <-done })
	pool.Fence = func(context.Context) error { return protected() }
	pool.Guard = func(context.Context) ([]string, []string, error) {
		err := protected()
		return g.readOnly, g.masked, err
	}
	files = func(ctx context.Context) (string, error) {
		dir, err := e.touch(ctx)
		if err != nil {
			return "", err
		}
		return dir, protected()
	}
	return files, func() { cancel(); _ = protected() }
}

// guard fills in what is to be guarded. It waits for the files.
func (e *Environment) guard(ctx context.Context, judge Judge, g *guard) error {
	if err := e.files.Ready(ctx); err != nil {
		return err
	}
	var names []string
	for _, e := range e.files.Base().Entries {
		if e.Type != workspace.TypeDir {
			names = append(names, string(e.Path))
		}
	}
	masked, err := judge.Masked(ctx, names)
	if err != nil {
		return reason.New(reason.IsolationUnavailable, "say which files no tool may read: %w", err)
	}
	masked = append(masked, linked(e.Workspace.Source, masked, names)...)
	inPlace := e.Workspace.Strategy == v1alpha1.StrategyInPlace
	git := gitguard.Files(e.Root(), e.files.Base(), inPlace)
	if inPlace {
		if err := e.guardGit(); err != nil {
			return err
		}
		git = slices.DeleteFunc(git, func(name string) bool { // a link cannot be read-only; it is guarded
			info, err := os.Lstat(filepath.Join(e.Root(), name))
			return err == nil && info.Mode()&os.ModeSymlink != 0
		})
		for _, name := range e.guarded.Protected(e.Root()) {
			if !slices.Contains(git, name) {
				git = append(git, name)
			}
		}
	}
	g.readOnly, g.masked = e.inside(slices.Concat(git, e.Manifests)), e.inside(masked)
	own, mounted := programs(e.Tools, e.Root())
	g.readOnly, g.mounted = append(g.readOnly, own...), mounted
	return nil
}

// programs are the files that the commands of tools name, and the folders that tools
// mount to read from, where another tool could change them: in the files of the run,
// and in folders that a tool may write to. It would else decide what runs with the
// variables and the network of that tool.
func programs(tools []tool.Definition, root string) (own, mounted []string) {
	var writable []string
	for i := range tools {
		for _, m := range tools[i].Spec.Isolation.Mounts {
			if m.Access == v1alpha1.MountReadWrite {
				writable = append(writable, m.Path)
			}
		}
	}
	add := func(path string) {
		switch {
		case within(path, root):
			own = append(own, path)
		case slices.ContainsFunc(writable, func(dir string) bool { return within(path, dir) }):
			mounted = append(mounted, path)
		}
	}
	for i := range tools {
		for _, m := range tools[i].Spec.Isolation.Mounts {
			resolved, err := filepath.EvalSymlinks(m.Path)
			if err != nil || m.Access == v1alpha1.MountReadWrite {
				continue
			}
			overlaps := func(dir string) bool { return dir == resolved || within(dir, resolved) || within(resolved, dir) }
			if within(resolved, root) && !slices.ContainsFunc(writable, overlaps) { // a manifest that lets a tool write there is obeyed
				own = append(own, resolved)
			}
		}
		for at, file := range tools[i].Command {
			if at > 0 && file != "" && !filepath.IsAbs(file) { // programs start in the files of the run
				file = filepath.Join(root, file)
			}
			resolved, err := filepath.EvalSymlinks(file)
			if err != nil || !filepath.IsAbs(file) {
				continue
			}
			if info, err := os.Stat(resolved); err != nil || !info.Mode().IsRegular() {
				continue
			}
			add(resolved)
			if resolved == filepath.Clean(file) {
				continue
			}
			if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil { // a link cannot be protected, but the folder that it is in
				add(dir)
			}
		}
	}
	return own, mounted
}

// within reports whether a path is below a folder.
func within(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }

// linked returns those of some names, in the folder that the files come from, under
// which a masked file is found as well: hard links are names like any other.
func linked(source string, masked, names []string) (more []string) {
	if source == "" {
		return nil
	}
	type inode struct{ dev, ino uint64 }
	look := func(name string) (id inode, links bool) {
		info, err := os.Lstat(filepath.Join(source, name))
		if err != nil || !info.Mode().IsRegular() {
			return id, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Nlink < 2 {
			return id, false
		}
		return inode{uint64(st.Dev), st.Ino}, true //nolint:unconvert,nolintlint // it is another type elsewhere
	}
	hidden := map[inode]bool{}
	for _, name := range masked {
		if id, ok := look(name); ok {
			hidden[id] = true
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	for _, name := range names {
		if id, ok := look(name); ok && hidden[id] && !slices.Contains(masked, name) {
			more = append(more, name)
		}
	}
	return more
}

// inside are the absolute paths of names in the run's files.
func (e *Environment) inside(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(e.Root(), name)
	}
	return paths
}
