package policy

import (
	"io"
	"os"
	"slices"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// A file of the workspace that a shell runs (bash scripts/build.sh) is judged by its text:
// the commands in it are facts of the call. The text is read when the call is judged, so
// nothing that the call does may change the file first. What others change until it runs is
// held by the binding of the call.

// scriptSize is more than the analysis reads of a script.
const scriptSize = 256 << 10

// scriptText returns the text of a script in the workspace.
func (w Workspace) scriptText(file string) (text string, ok bool) {
	p := w.resolve(file, opRead)
	if !p.InWorkspace || p.Real == shell.Unknown || w.isTemporary(p.Clean) {
		return "", false
	}
	f, err := openRegular(p.Real)
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false
	}
	if _, links, _ := identify(info); links > 1 { // it may be changed under another name
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, scriptSize+1))
	if err != nil || len(b) > scriptSize {
		return "", false
	}
	return string(b), true
}

// changedScripts marks a call as dynamic that may change a script which it runs.
func (w Workspace) changedScripts(f *facts) {
	for _, s := range f.script.Scripts {
		file := w.resolve(f.script.Joined(s), opRead).Real
		for i := range f.paths {
			p := &f.paths[i]
			if (p.Op == opWrite || p.Op == opDelete) && (p.Real == shell.Unknown || inside(file, p.Real) || glob(p.Real, file)) {
				f.doubt("the script may change " + s + ", which it runs")
			}
		}
	}
}

// hasLinks reports whether a path of the workspace is a symbolic link, or a folder that
// holds one. A folder with too many files counts as one that does.
func (w Workspace) hasLinks(f *facts) func(file string) bool {
	return func(file string) bool {
		p := w.resolve(file, opRead)
		switch info, err := os.Lstat(p.Clean); {
		case !p.InWorkspace || err != nil:
			return false
		case info.Mode()&os.ModeSymlink != 0:
			return true
		case !info.IsDir():
			return false
		}
		var holds func(dir string) bool
		holds = func(dir string) bool {
			in := w.list(dir, patternEntries-f.read)
			f.read += len(in.list) + 1
			return !in.whole || slices.ContainsFunc(in.list, func(e os.DirEntry) bool {
				return e.Type()&os.ModeSymlink != 0 || e.IsDir() && holds(dir+"/"+e.Name())
			})
		}
		return holds(p.Clean)
	}
}
