package runner

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
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// hold says how the tools are contained, on a host that can contain them.
func (s *session) hold(p *plan) error {
	if s.pool.Profiles != nil || s.launcher.Level() != v1alpha1.IsolationSandbox {
		return nil // contain has refused whatever must not run without
	}
	at := tool.Place{Workspace: p.files.Dir, Masked: s.unseen()}
	if p.files.Strategy == v1alpha1.StrategyInPlace {
		at.Workspace = p.files.Source
	}
	held, err := tool.Profiles(p.tools, at)
	if err == nil { // of a part that could be held nothing may come: the rest would run without
		s.pool.Profiles = held
	}
	return err
}

// unseen are the folders of agentctl itself: in one of them a tool could read
// journals and answer for the person behind the run, in the other reach the
// sockets of other tools.
func (s *session) unseen() []string {
	dirs := []string{s.opts.State}
	if scratch := sandbox.ScratchDir(); scratch != "" {
		dirs = append(dirs, statedir.Resolve(scratch))
	}
	return dirs
}

// guard is what no contained program may do with files of the run: what git
// would run, the manifests that the run itself is made of, the programs of its
// tools, and every file that a policy lets nobody read. All are absolute paths.
type guard struct {
	readOnly, masked []string
	// mounted are programs in folders that a tool mounts and may change.
	mounted []string
}

// fence returns the files of the run for calls, which wait until contained
// programs can no longer do there what they must not. Release ends the work
// behind it and waits for that.
func (s *session) fence(ctx context.Context, gate *policy.Engine) (files func(context.Context) (string, error), release func()) {
	if len(s.pool.Profiles) == 0 && !s.pool.Opened(v1alpha1.IsolationContainer) {
		return s.workspace, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var g guard
	done := make(chan error, 1)
	go func() {
		err := s.guarded(ctx, gate, &g)
		if err == nil {
			err = s.launcher.Protect(ctx, slices.Concat(g.readOnly, g.mounted), g.masked)
		}
		done <- err
	}()
	protected := sync.OnceValue(func() error { return <-done })
	s.pool.Fence = func(context.Context) error { return protected() }
	s.pool.Guard = func(context.Context) ([]string, []string, error) {
		err := protected()
		return g.readOnly, g.masked, err
	}
	files = func(ctx context.Context) (string, error) {
		dir, err := s.workspace(ctx)
		if err != nil {
			return "", err
		}
		return dir, protected()
	}
	return files, func() { cancel(); _ = protected() }
}

// guarded says what is to be guarded. It waits for the files.
func (s *session) guarded(ctx context.Context, gate *policy.Engine, g *guard) error {
	if err := s.files.Ready(ctx); err != nil {
		return err
	}
	var names []string
	for _, e := range s.files.Base().Entries {
		if e.Type != workspace.TypeDir {
			names = append(names, string(e.Path))
		}
	}
	masked, err := gate.Masked(ctx, names)
	if err != nil {
		return reason.New(reason.IsolationUnavailable, "say which files no tool may read: %w", err)
	}
	masked = append(masked, linked(s.plan.files.Source, masked, names)...)
	inPlace := s.plan.files.Strategy == v1alpha1.StrategyInPlace
	git := gitguard.Files(s.root(), s.files.Base(), inPlace)
	if inPlace {
		if err := s.guardGit(); err != nil {
			return err
		}
		git = slices.DeleteFunc(git, func(name string) bool { // a link cannot be read-only; it is guarded
			info, err := os.Lstat(filepath.Join(s.root(), name))
			return err == nil && info.Mode()&os.ModeSymlink != 0
		})
		for _, name := range s.guarding.Protected(s.root()) {
			if !slices.Contains(git, name) {
				git = append(git, name)
			}
		}
	}
	g.readOnly, g.masked = s.inside(slices.Concat(git, s.manifests)), s.inside(masked)
	own, mounted := programs(s.tools, s.root())
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

// own returns those of some documents' files that lie in the files of the run,
// as paths in them: a tool must not rewrite what the run is judged by.
func (p *plan) own(docs []*manifest.Document) []string {
	var in []string
	for _, d := range docs {
		files := d.Files
		if len(files) == 0 {
			files = []string{filepath.Join(d.Dir, filepath.Base(d.File))}
		}
		for _, file := range files {
			file, err := filepath.EvalSymlinks(file)
			if err != nil {
				continue // standard input
			}
			if name, ok := strings.CutPrefix(file, p.files.Source+"/"); ok && p.files.Source != "" && !slices.Contains(in, name) {
				in = append(in, name)
			}
		}
	}
	return in
}

// inside are the absolute paths of names in the run's files.
func (s *session) inside(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(s.root(), name)
	}
	return paths
}
