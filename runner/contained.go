package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// level is how tightly a tool is held on a host that gives some level: a tool in
// an image is in a container, one that asks for nothing is given nothing.
func level(d *tool.Definition, host v1alpha1.IsolationLevel) v1alpha1.IsolationLevel {
	switch {
	case d.Contained():
		return d.Level
	case d.Spec.Isolation.Minimum == v1alpha1.IsolationNone:
		return v1alpha1.IsolationNone
	}
	return host
}

// otherLevels are the levels of the tools that do not run at the host's, by call
// name; nil when all do.
func otherLevels(tools []tool.Definition, host v1alpha1.IsolationLevel) map[string]string {
	var others map[string]string
	for i := range tools {
		d := &tools[i]
		own := level(d, host)
		if own == host {
			continue
		}
		if others == nil {
			others = map[string]string{}
		}
		others[d.Name] = string(own)
	}
	return others
}

// surroundings tell a model what the programs see that it starts by a contained
// tool, so that it does not try what cannot work; "" where there is no such tool.
func (s *session) surroundings() string {
	for i := range s.tools {
		d := &s.tools[i]
		if !slices.Contains(d.Spec.Effects, v1alpha1.EffectExecute) || level(d, s.launcher.Level()) == v1alpha1.IsolationNone {
			continue
		}
		text := d.Name + " runs them in a sandbox that shows the workspace, /usr and an empty home folder"
		switch d.Spec.Network.Mode {
		case v1alpha1.NetworkProxy:
			text += ", and lets them reach " + strings.Join(d.Spec.Network.Allow, ", ") + " through HTTP_PROXY"
		case v1alpha1.NetworkNone:
			text += ", and no network"
		case v1alpha1.NetworkHost:
		}
		return text
	}
	return ""
}

// reaches says what a tool that is held reaches or changes besides the files of
// the run; "" is nothing.
func reaches(d *tool.Definition) string {
	if n := d.Spec.Network.Mode; n != v1alpha1.NetworkNone {
		return "its network is " + string(n)
	}
	for _, m := range d.Spec.Isolation.Mounts {
		if m.Access == v1alpha1.MountReadWrite {
			return "it may change " + m.Path
		}
		if why := listens(m.Path); why != "" {
			return "of " + m.Path + ", which it sees, " + why
		}
	}
	return ""
}

// maxListens bounds how many files of a mount are looked at: some 0.3 s.
const maxListens = 100_000

// listens says whether somebody of the host may listen in a folder that is
// mounted: to sockets and FIFOs one can write through a read-only mount. What is
// too large to be looked at counts as if.
func listens(folder string) (why string) {
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		folder = target
	}
	seen := 0
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		switch seen++; {
		case err != nil:
			return err
		case seen > maxListens:
			why = fmt.Sprintf("only the first %d files were looked at for sockets", maxListens)
		case e.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
			why = name + " leads to a program of the host"
		default:
			return nil
		}
		return fs.SkipAll
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		why = "not all can be looked at"
	}
	return why
}
