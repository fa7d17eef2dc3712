package policy

import (
	"path"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// below returns the folder of a path of which is known only that it is somewhere in that
// folder: the path ends with /?.
func below(raw string) (dir string, ok bool) {
	dir, ok = strings.CutSuffix(raw, "/"+shell.Unknown)
	if ok && dir == "" {
		dir = "/"
	}
	return dir, ok
}

// resolveBelow is resolve for such a path: what is true of it is what is true of the folder.
// The files that are in the folder now are judged by themselves.
func (w Workspace) resolveBelow(raw, dir, op string) Path {
	p := w.resolve(dir, op)
	p.Raw = raw
	if p.Clean == shell.Unknown || p.Real == shell.Unknown {
		p.Clean, p.Real = shell.Unknown, shell.Unknown
		return p
	}
	p.Clean, p.Real = path.Join(p.Clean, shell.Unknown), path.Join(p.Real, shell.Unknown)
	p.Secret = p.Secret || IsSecret(p.Clean) || IsSecret(p.Real)
	return p
}

// somewhere notes that a script does something to files below a folder. A file that is
// written may be a new one, of any name.
func (f *facts) somewhere(raw string, writes bool) {
	dir, ok := below(raw)
	switch {
	case !ok:
	case writes:
		f.doubt("it writes a file below " + dir + " that only the run can tell")
	case strings.ContainsAny(dir, "*?["):
		f.doubt("it reads a file below " + dir + ", which is a pattern")
	default:
		f.script.Trees = add(f.script.Trees, dir)
	}
}
