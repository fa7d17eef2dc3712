package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// ownParts is the namespace of the runner, whatever a tool is called.
const ownParts = "agentctl"

// parts takes the data parts of a reply into the result, without secrets. A tool names only
// parts of its own: a type of another would be read as if that had sent it. What is refused
// is told.
func (r *Registry) parts(d *Definition, result *message.ToolResult, sent []message.DataPart) (refused []string) {
	for _, p := range sent {
		switch {
		case !d.owns(p.Type):
			refused = append(refused, fmt.Sprintf("[a part is left out: its type is %.100q, and those of this tool are %q and a name]", p.Type, d.Program()+"/"))
		case len(p.Data) == 0:
			refused = append(refused, fmt.Sprintf("[part %s is left out: it is no JSON, or too large]", p.Type))
		default:
			safe := r.Redactor.JSON(p.Data)
			if !json.Valid(safe) {
				refused = append(refused, fmt.Sprintf("[part %s is left out: nothing would be left of it without the secrets in it]", p.Type))
				continue
			}
			result.Parts = append(result.Parts, message.DataPart{Type: p.Type, Data: safe})
		}
	}
	return refused
}

// owns reports whether a type of a part is one of the tool.
func (d *Definition) owns(kind string) bool {
	space, name, ok := strings.Cut(kind, "/")
	return ok && space == d.Program() && space != ownParts && named(name)
}

// named reports whether a text is a name: [A-Za-z0-9_-]{1,64}.
func named(s string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0
}

// inform passes on, without secrets, what a call says of itself; nil where nobody looks.
func (r *Registry) inform(call string) func(title string, metadata json.RawMessage) {
	if r.Inform == nil {
		return nil
	}
	return func(title string, metadata json.RawMessage) {
		title = r.Redactor.Cut(title)
		if len(metadata) > 0 {
			if metadata = r.Redactor.JSON(metadata); !json.Valid(metadata) {
				metadata = nil
			}
		}
		if title != "" || len(metadata) > 0 {
			r.Inform(call, title, metadata)
		}
	}
}
