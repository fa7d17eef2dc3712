package environment

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// mostFixed bounds the files that are made read-only: each is a mount of every sandbox.
const mostFixed = 2000

// mostEndings bounds the endings that new files are tried with.
const mostEndings = 64

// fixed are the files of the run that a policy denies to edit, and that exist. A folder takes
// the place of its files where no file in it may be changed, and none of a new name either.
func (g *guard) fixed(ctx context.Context, judge Judge, names []string) ([]string, error) {
	denied, err := judge.Fixed(ctx, names)
	if err != nil || len(denied) == 0 {
		return nil, err
	}
	denied = append(denied, linked(g.files.o.Workspace.Source, denied, names)...)
	whole, err := wholeFolders(ctx, judge, names, denied)
	if err != nil {
		return nil, err
	}
	fixed := whole
	for _, name := range denied {
		if !slices.ContainsFunc(whole, func(dir string) bool { return within(name, dir) }) {
			fixed = append(fixed, name)
		}
	}
	fixed = slices.DeleteFunc(fixed, func(name string) bool { // nothing can be mounted on a link, and a mount may show other files
		full := filepath.Join(g.files.Root(), name)
		at, err := filepath.EvalSymlinks(full)
		return err != nil || at != full
	})
	if len(fixed) > mostFixed {
		g.warn(fmt.Sprintf("policies deny to change %d single files, more than %d: programs are kept from the first of them, and the policy alone judges the others; deny whole folders", len(fixed), mostFixed))
		fixed = fixed[:mostFixed]
	}
	return fixed, nil
}

// wholeFolders are the highest folders that hold only denied files, and in which a new file
// of any ending that the run has is denied as well.
func wholeFolders(ctx context.Context, judge Judge, names, denied []string) (whole []string, err error) {
	open, endings := map[string]bool{}, []string{""}
	isDenied := make(map[string]bool, len(denied))
	for _, name := range denied {
		isDenied[name] = true
	}
	for _, name := range names {
		if end := path.Ext(name); len(endings) < mostEndings && !slices.Contains(endings, end) {
			endings = append(endings, end)
		}
		if isDenied[name] {
			continue
		}
		for dir := path.Dir(name); dir != "." && dir != "/" && !open[dir]; dir = path.Dir(dir) {
			open[dir] = true
		}
	}
	tried := map[string]bool{}
	for _, name := range denied {
		var above []string
		for dir := path.Dir(name); dir != "." && dir != "/" && !open[dir]; dir = path.Dir(dir) {
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if tried[dir] {
				continue
			}
			tried[dir] = true
			if slices.ContainsFunc(whole, func(w string) bool { return within(dir, w) }) {
				break
			}
			var fresh []string
			for _, end := range endings {
				fresh = append(fresh, path.Join(dir, "a-new-file"+end), path.Join(dir, "a-new-folder", "a-new-file"+end))
			}
			still, err := judge.Fixed(ctx, fresh)
			if err != nil {
				return nil, err
			}
			if len(still) == len(fresh) {
				whole = append(whole, dir)
				break
			}
		}
	}
	return whole, nil
}
