package message

// Binding bounds what a call may do when it runs: what it was found to do when it was
// judged, and no more. Reading is not bound.
type Binding struct {
	// Paths are what the call may change.
	Paths []BoundPath `json:"paths,omitempty"`
	// Programs are those that it may start, by name or by absolute path.
	Programs []string `json:"programs,omitempty"`
	// Network reports whether it may open connections, as far as its tool may.
	Network bool `json:"network,omitempty"`
}

// BoundPath is a file or folder that a call may change.
type BoundPath struct {
	// Path is absolute, with the links resolved that were on the way to it when the call
	// was judged.
	Path string  `json:"path"`
	Op   BoundOp `json:"op"`
	// Links is the number of names that the file had, where it had several.
	Links int `json:"links,omitempty"`
}

// BoundOp is what a call may do to a path.
type BoundOp string

// The operations of a bound call. What exists of a folder's content is part of it.
const (
	// BoundWrite changes the content of the file, or makes it.
	BoundWrite BoundOp = "write"
	// BoundReplace is BoundWrite by a program that may write another file beside it and
	// put that in its place.
	BoundReplace BoundOp = "replace"
	// BoundRemove removes the file or folder.
	BoundRemove BoundOp = "remove"
	// BoundRename gives it another name, or gives its name to something else.
	BoundRename BoundOp = "rename"
)
