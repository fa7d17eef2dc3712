package policy

import (
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// Reliance is what of the file system the facts of a call were taken from.
type Reliance struct {
	// Facts as a decision that asks or denies has them.
	Facts json.RawMessage
	// Paths are absolute names whose links count; Listed: of folders also which files are
	// below them.
	Paths  []string
	Listed bool
	// Folders are those of which the files below count in any case.
	Folders []string
	// Names are those of which also counts whether they exist, Texts those that were read.
	Names, Texts []string
	// Contents is what else counts, for people; "" is nothing.
	Contents string
}

// Relies finds out what the facts of a call are taken from. The call is not judged, and not
// counted. A call whose arguments cannot be read relies on nothing.
func (e *Engine) Relies(call message.ToolCall) Reliance {
	j, ok := e.tools[call.Tool]
	if !ok {
		return Reliance{}
	}
	in, err := e.input(j, call)
	if err != nil {
		return Reliance{}
	}
	f := in.facts
	r := Reliance{Facts: in.describe(nil), Listed: e.byPath || slices.ContainsFunc(e.ceilings, func(c *Engine) bool { return c.byPath })}
	for i := range f.paths {
		p := &f.paths[i]
		if p.Clean == shell.Unknown {
			continue
		}
		r.Paths = add(r.Paths, strings.TrimSuffix(p.Clean, "/?"))
		if at := strings.IndexAny(p.Raw, "*?["); f.shell && at >= 0 {
			r.Folders = add(r.Folders, f.workspace.resolve(f.script.Joined(p.Raw[:strings.LastIndexByte(p.Raw[:at], '/')+1]+"."), opRead).Clean)
		}
	}
	absolute := func(names []string) (all []string) {
		for _, name := range names {
			all = add(all, f.workspace.resolve(f.script.Joined(name), opRead).Clean)
		}
		return all
	}
	r.Names, r.Texts = absolute(f.script.Words), absolute(f.script.Scripts)
	if len(f.script.Repositories) > 0 && r.Listed {
		r.Contents = "the files that git tracks"
	}
	return r
}
