package environment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// guard lists the files that no isolated program may change or read: what git would
// run, the manifests of the run itself, the programs of its tools, and every file that
// a policy denies to read, also where a mount shows it. All are absolute paths. It is in force when a judge has
// decided which files those are.
type guard struct {
	files *Files
	tools []tool.Definition
	// protect makes the first files read-only in every sandbox, and hides the others.
	protect func(ctx context.Context, readOnly, masked []string) error
	// warn is told what cannot be guarded.
	warn func(text string)

	// inForce is closed when the other fields are set.
	inForce          chan struct{}
	readOnly, masked []string
	err              error
}

// enforce finds the files and protects them, in the background. The function it returns
// ends that work and waits for its end.
func (g *guard) enforce(ctx context.Context, judge Judge) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(g.inForce)
		var mounted []string
		if mounted, g.err = g.find(ctx, judge); g.err == nil {
			g.err = g.protect(ctx, slices.Concat(g.readOnly, mounted), g.masked)
		}
	}()
	return func() { cancel(); <-g.inForce }
}

// wait returns the guarded files once they are protected.
func (g *guard) wait(ctx context.Context) (readOnly, masked []string, err error) {
	select {
	case <-g.inForce:
		return g.readOnly, g.masked, g.err
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// find fills in what is to be guarded. It waits for the files. Mounted are programs in
// folders that a tool mounts and may change.
func (g *guard) find(ctx context.Context, judge Judge) (mounted []string, err error) {
	f := g.files
	if err := f.Ready(ctx); err != nil {
		return nil, err
	}
	var names []string
	for _, e := range f.files.Base().Entries {
		if e.Type != workspace.TypeDir {
			names = append(names, string(e.Path))
		}
	}
	shown, err := mountsOf(g.tools, f.o.Workspace)
	if err != nil {
		return nil, reason.New(reason.IsolationUnavailable, "%w", err)
	}
	more, err := shown.names(ctx, workspace.MaxFiles)
	if err != nil {
		return nil, reason.New(reason.IsolationUnavailable, "%w", err).WithHint("mount less in spec.isolation.mounts of the Tool")
	}
	if len(more) > 0 {
		names = append(names, more...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	masked, err := judge.Masked(ctx, names)
	if err != nil {
		return nil, reason.New(reason.IsolationUnavailable, "say which files no tool may read: %w", err)
	}
	fixed, err := g.fixed(ctx, judge, names)
	if err != nil {
		return nil, reason.New(reason.IsolationUnavailable, "say which files no tool may change: %w", err)
	}
	masked = append(masked, linked(f.o.Workspace.Source, masked, names)...)
	inPlace := f.o.Workspace.Strategy == v1alpha1.StrategyInPlace
	git := gitguard.Files(f.Root(), f.files.Base(), inPlace)
	if inPlace {
		if err := f.git.guard(); err != nil {
			return nil, err
		}
		git = slices.DeleteFunc(git, func(name string) bool { // a link cannot be read-only; it is guarded
			info, err := os.Lstat(filepath.Join(f.Root(), name))
			return err == nil && info.Mode()&os.ModeSymlink != 0
		})
		for _, name := range f.git.guarded.Protected(f.Root()) {
			if !slices.Contains(git, name) {
				git = append(git, name)
			}
		}
	}
	g.readOnly, g.masked = inside(f.Root(), slices.Concat(git, f.o.Manifests, fixed)), slices.Concat(inside(f.Root(), masked), shown.at(masked))
	own, mounted := programs(g.tools, f.Root())
	g.readOnly = append(g.readOnly, own...)
	return mounted, nil
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

// inside are the absolute paths of names in a folder.
func inside(root string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(root, name)
	}
	return paths
}
