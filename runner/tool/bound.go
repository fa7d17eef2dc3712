package tool

import (
	"cmp"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// temporary is the folder that each sandbox has for itself.
const temporary = "/tmp"

// keeps are folders of the home of a sandbox in which programs keep what they can do
// without: caches and logs. Not one of them holds settings that a later call would follow.
var keeps = []string{".cache", ".npm", ".config/go/telemetry"}

// bound is the binding of a call as its program is sent it. The /tmp of a sandbox is part
// of no binding: it is private, and a shell writes there what it needs for itself. So are
// folders of its home that programs write to whatever they are called for.
func (r *Registry) bound(d *Definition, b *message.Binding, beyond *outside) *host.Binding {
	if b == nil {
		return nil
	}
	to := &host.Binding{Programs: b.Programs, Network: b.Network}
	if r.Profile != nil {
		to.Scratch = scratch(r.Profile(d.Program()), beyond)
	}
	for _, p := range b.Paths {
		to.Paths = append(to.Paths, host.BoundPath{Path: p.Path, Op: string(p.Op), Links: p.Links})
	}
	return to
}

// scratch are the folders of a sandbox in which nothing lasts, and nothing of the host is
// shown: a right to a folder is one to all that is below it.
func scratch(p *spec.Profile, beyond *outside) (folders []string) {
	if p == nil {
		return nil
	}
	all := []string{temporary}
	for _, name := range keeps {
		all = append(all, filepath.Join(home, name))
	}
	shown := []string{p.Workspace}
	for _, m := range p.Mounts {
		shown = append(shown, cmp.Or(m.Target, m.Source))
	}
	for _, o := range beyond.paths() {
		shown = append(shown, o.Path)
	}
	for _, folder := range all {
		if !slices.ContainsFunc(shown, func(at string) bool { return below(at, folder) || below(folder, at) }) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// below reports whether a path is a folder, or below it.
func below(path, folder string) bool {
	if path == "" || folder == "" {
		return false
	}
	in, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(in)
}
