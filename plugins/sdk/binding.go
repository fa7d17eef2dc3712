package sdk

import "agentctl.dev/agentctl/plugins/sdk/toolpb"

// Binding bounds a call to what it was found to do when it was judged. It may read
// whatever the program may read.
type Binding struct {
	// Paths are what the call may change.
	Paths []BoundPath
	// Programs are what it may start, by name or by absolute path.
	Programs []string
	// Network reports whether it may open connections.
	Network bool
	// Scratch are folders in which it may change everything.
	Scratch []string
}

// BoundPath is a file or folder that a call may change.
type BoundPath struct {
	// Path is absolute and had no links on the way when the call was judged.
	Path string
	// Op is one of the operations below.
	Op string
	// Links is the number of names that the file had, where it had several.
	Links int
}

// The operations of a bound path.
const (
	// BoundWrite changes the content of the file, or makes it.
	BoundWrite = "write"
	// BoundReplace may also put a file that was written beside it in its place.
	BoundReplace = "replace"
	// BoundRemove removes the file or folder.
	BoundRemove = "remove"
	// BoundRename gives it another name, or its name to something else.
	BoundRename = "rename"
)

func binding(from *toolpb.Binding) *Binding {
	if from == nil {
		return nil
	}
	to := &Binding{Programs: from.GetPrograms(), Network: from.GetNetwork(), Scratch: from.GetScratch()}
	for _, p := range from.GetPaths() {
		to.Paths = append(to.Paths, BoundPath{Path: p.GetPath(), Op: p.GetOp(), Links: int(p.GetLinks())})
	}
	return to
}
