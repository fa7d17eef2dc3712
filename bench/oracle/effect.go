//go:build linux && amd64

package main

import "fmt"

// Kind is what a process did.
type Kind string

// The kinds of effects that are recorded.
const (
	Exec    Kind = "exec"
	Read    Kind = "read"
	Write   Kind = "write"
	Create  Kind = "create"
	Remove  Kind = "remove"
	Rename  Kind = "rename" // Path is the new name
	Link    Kind = "link"
	Change  Kind = "change" // mode, owner, times or attributes
	Connect Kind = "connect"
)

// Effect is something that a process did and that succeeded, or a connection that it tried.
type Effect struct {
	Kind Kind `json:"kind"`
	// Path is the real path of the file, Connect: the address.
	Path string `json:"path"`
	// By is the program that did it: the last element of its path.
	By string `json:"by"`
	// Passing is set for a file that was there neither before the script nor after it.
	Passing bool `json:"passing,omitempty"`
}

func (e Effect) String() string { return fmt.Sprintf("%s %s by %s", e.Kind, e.Path, e.By) }

// Trace is what a script did.
type Trace struct {
	Script  string   `json:"script"`
	Effects []Effect `json:"effects"`
	// Links are those in the workspace before the script, if they are not the fixture's.
	Links map[string]string `json:"links,omitempty"`
	// Cut is set when the script was killed at its deadline.
	Cut bool `json:"cut,omitempty"`
}
