package plan

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

// Level is the isolation of a tool on a host that supports a level: a tool in an image
// runs in a container, a tool that asks for no isolation gets none.
func Level(d *tool.Definition, host v1alpha1.IsolationLevel) v1alpha1.IsolationLevel {
	switch {
	case d.Contained():
		return d.Level
	case d.Remote != "":
		return v1alpha1.IsolationNone
	case d.Spec.Isolation.Minimum == v1alpha1.IsolationNone:
		return v1alpha1.IsolationNone
	}
	return host
}

// remote is where a tool runs whose server is elsewhere: nothing of it runs on this host.
const remote = "Remote"

// OtherLevels are the levels of the tools that do not run at the host's level, by call
// name; nil when all do. A tool whose server is elsewhere has no level of this host.
func OtherLevels(tools []tool.Definition, host v1alpha1.IsolationLevel) map[string]string {
	var others map[string]string
	for i := range tools {
		d := &tools[i]
		own := string(Level(d, host))
		if d.Remote != "" && !d.Contained() {
			own = remote
		}
		if own == string(host) {
			continue
		}
		if others == nil {
			others = map[string]string{}
		}
		others[d.Name] = own
	}
	return others
}

// programs describes to a model what programs see that it starts by an isolated tool,
// so that it does not try what cannot work; "" where there is no such tool.
func (p *Plan) programs(host v1alpha1.IsolationLevel) string {
	for i := range p.Definitions {
		d := &p.Definitions[i]
		if !slices.Contains(d.Spec.Effects, v1alpha1.EffectExecute) || Level(d, host) == v1alpha1.IsolationNone {
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

// Reach describes what an isolated tool reaches or changes besides the files of the
// run; "" is nothing.
func Reach(d *tool.Definition) string {
	if d.Remote != "" {
		return "it is answered by " + d.Remote
	}
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

// listens reports whether a program of the host may listen in a mounted folder: sockets
// and FIFOs can be written to through a read-only mount. A folder that is too large to
// be searched counts as one with a listener.
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
