package tool

import (
	"cmp"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// temporary is the folder that each sandbox has for itself.
const temporary = "/tmp"

// bound is the binding of a call as its program is sent it. The /tmp of a sandbox is part
// of no binding: it is private, and a shell writes there what it needs for itself.
func (r *Registry) bound(d *Definition, b *message.Binding, beyond *outside) *host.Binding {
	if b == nil {
		return nil
	}
	to := &host.Binding{Programs: b.Programs, Network: b.Network}
	if r.Profile != nil && ownTemporary(r.Profile(d.Program()), beyond) {
		to.Scratch = []string{temporary}
	}
	for _, p := range b.Paths {
		to.Paths = append(to.Paths, host.BoundPath{Path: p.Path, Op: string(p.Op), Links: p.Links})
	}
	return to
}

// ownTemporary reports whether a sandbox has a /tmp in which nothing of the host is shown: a
// right to a folder is one to all that is below it.
func ownTemporary(p *spec.Profile, beyond *outside) bool {
	if p == nil {
		return false
	}
	shown := []string{p.Workspace}
	for _, m := range p.Mounts {
		shown = append(shown, cmp.Or(m.Target, m.Source))
	}
	for _, o := range beyond.paths() {
		shown = append(shown, o.Path)
	}
	for _, at := range shown {
		if at = filepath.Clean(at); at == "/" || at == temporary || strings.HasPrefix(at, temporary+"/") {
			return false
		}
	}
	return true
}
