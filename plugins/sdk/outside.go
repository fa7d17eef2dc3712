package sdk

import (
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// OutsidePath is a file or folder outside the workspace that a call may use. It
// exists when the call begins.
type OutsidePath struct {
	// Name is the path as the arguments name it: absolute and without dots, or
	// beginning with "~".
	Name string
	// Path is where it is, with all links resolved. Open this one, and do not
	// follow links when you do: something else may have been put in its place.
	Path string
	// Writable reports whether the call may change it. A writable file cannot be
	// replaced by a rename: write into it.
	Writable bool
}

// Approved returns the path outside the workspace that an argument names, if
// the call may use it. The argument is a path as the model wrote it; a relative
// one counts from the workspace. Only exactly the paths of Outside are found,
// and not what is below them: a folder is approved with all that is in it, but a
// call that names a file in it is judged for that file.
func (c *Call) Approved(name string) (OutsidePath, bool) {
	if name == "" || len(c.Outside) == 0 {
		return OutsidePath{}, false
	}
	switch {
	case strings.HasPrefix(name, "~"), filepath.IsAbs(name):
		name = filepath.Clean(name)
	default:
		name = filepath.Join(c.Workspace, name)
	}
	for _, p := range c.Outside {
		if p.Name == name {
			return p, true
		}
	}
	return OutsidePath{}, false
}

func outside(from []*toolpb.OutsidePath) []OutsidePath {
	var to []OutsidePath
	for _, p := range from {
		to = append(to, OutsidePath{Name: p.GetName(), Path: p.GetPath(), Writable: p.GetWritable()})
	}
	return to
}
