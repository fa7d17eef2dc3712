package trail

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/journal"
)

// References are what an event refers to outside of the journal.
type References struct {
	// Seq is the number of the event.
	Seq int64
	// Blobs by their ids.
	Blobs []string
	// Change is the blob of a change, which refers to further blobs; "" for none.
	Change string
	// Child is the run that a call has started, with the head of its journal; nil for none.
	Child *message.ChildRun
}

// blobScheme begins the URL of a file that is a blob of the run.
const blobScheme = "blob:"

// OnResults has a projection call see with what the result of each call refers to, which it
// comes across anyway.
func (p *Projection) OnResults(see func(References)) { p.refers = see }

// Refers returns what the event of a line refers to, except the result of a call. Only the
// types that can refer to something are looked at.
func Refers(l journal.Line) (r References, err error) {
	r.Seq = l.Seq
	blob := func(value []byte) {
		if id := unquoted(value); id != "" {
			r.Blobs = append(r.Blobs, id)
		}
	}
	var member func(name string, value []byte) bool
	switch event.Type(l.Type) {
	case event.TypeRunStarted:
		member = func(name string, value []byte) bool {
			switch name {
			case "plan":
				blob(value)
			case "files":
				r.files(value)
			}
			return true
		}
	case event.TypeRunResumed:
		member = func(name string, value []byte) bool {
			if name == "turn" || name == "fork" {
				_ = members(value, func(name string, value []byte) bool {
					switch name {
					case "plan":
						blob(value)
					case "files":
						r.files(value)
					}
					return true
				})
			}
			return true
		}
	case event.TypeToolsDescribed, event.TypeWorkspaceSnapshot, event.TypeWorkspacePatch:
		member = func(name string, value []byte) bool {
			switch name {
			case "definitions", "snapshot", "diff":
				blob(value)
			case "change":
				blob(value)
				r.Change = unquoted(value)
			}
			return true
		}
	case event.TypeContextPrune:
		member = func(name string, value []byte) bool {
			if name == "calls" {
				elements(value, func(one []byte) {
					_ = members(one, func(name string, value []byte) bool {
						if name == "blob" {
							blob(value)
						}
						return true
					})
				})
			}
			return true
		}
	default:
		return r, nil
	}
	err = membersUntil(l.Text, "data", func(name string, value []byte) bool {
		if name == "data" {
			_ = members(value, member)
		}
		return true
	})
	return r, err
}

// files takes the blobs of a list of files.
func (r *References) files(list []byte) {
	elements(list, func(one []byte) {
		_ = members(one, func(name string, value []byte) bool {
			if id := unquoted(value); name == "url" && len(id) > len(blobScheme) && id[:len(blobScheme)] == blobScheme {
				r.Blobs = append(r.Blobs, id[len(blobScheme):])
			}
			return true
		})
	})
}

// coding takes the blobs of what a coding agent of others has done.
func (r *References) coding(value []byte) {
	_ = members(value, func(name string, value []byte) bool {
		switch name {
		case "change":
			r.Change = unquoted(value)
			r.Blobs = append(r.Blobs, r.Change)
		case "diff", "before", "log", "errors":
			r.Blobs = append(r.Blobs, unquoted(value))
		}
		return true
	})
}

func child(value []byte) *message.ChildRun {
	c := &message.ChildRun{}
	_ = members(value, func(name string, value []byte) bool {
		switch name {
		case "run":
			c.Run = unquoted(value)
		case "head":
			c.Head = unquoted(value)
		}
		return true
	})
	return c
}
