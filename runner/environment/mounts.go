package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// mounts are what the tools of a run mount of the folder that its files come from: there
// a program sees the files themselves, beside those of the run.
type mounts struct {
	source string
	shown  []mount
}

// mount shows a file or folder of the host to programs at a path.
type mount struct{ path, target string }

// mountsOf returns those mounts.
func mountsOf(tools []tool.Definition, files workspace.Spec) (m mounts, err error) {
	mounting := func(d tool.Definition) bool { return len(d.Spec.Isolation.Mounts) > 0 }
	if files.Source == "" || files.Strategy == v1alpha1.StrategyEmpty || !slices.ContainsFunc(tools, mounting) {
		return m, nil
	}
	m.source, err = filepath.EvalSymlinks(files.Source)
	if errors.Is(err, fs.ErrNotExist) { // a run is resumed on its copy
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("look at the folder of the workspace: %w", err)
	}
	for i := range tools {
		for _, declared := range tools[i].Spec.Isolation.Mounts {
			target, err := filepath.EvalSymlinks(declared.Path)
			if err != nil || !tool.Below(target, m.source) && !tool.Below(m.source, target) {
				continue // what does not exist is not mounted
			}
			if one := (mount{declared.Path, target}); !slices.Contains(m.shown, one) {
				m.shown = append(m.shown, one)
			}
		}
	}
	return m, nil
}

// names are the files that the mounts show, at most so many, relative to the folder. They
// need not be files of the run, which may exclude some.
func (m *mounts) names(ctx context.Context, most int) (names []string, err error) {
	for _, one := range m.shown {
		top := one.target
		if tool.Below(m.source, top) {
			top = m.source
		}
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist): // no program of this user sees more
				return nil
			case err != nil:
				return err
			case e.IsDir():
				return nil
			case len(names) == most:
				return fmt.Errorf("more than %d files: %w", most, workspace.ErrTooLarge)
			}
			name, err := filepath.Rel(m.source, path)
			names = append(names, name)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list what the mount %s shows of the workspace: %w", one.path, err)
		}
	}
	return names, nil
}

// at are the absolute paths at which programs see some files of the folder in the mounts.
func (m *mounts) at(names []string) (paths []string) {
	for _, one := range m.shown {
		for _, path := range inside(m.source, names) {
			if !tool.Below(path, one.target) {
				continue
			}
			if rest, err := filepath.Rel(one.target, path); err == nil {
				paths = append(paths, filepath.Join(one.path, rest))
			}
		}
	}
	return paths
}
