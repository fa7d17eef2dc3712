package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// temporary is the folder that each sandbox has for itself, empty at first. A command in a
// sandbox can change nothing there that lasts, so it counts as a part of the workspace.
const temporary = "/tmp"

// forTool is the workspace as the calls of a tool see it.
func (w Workspace) forTool(t *Tool) Workspace {
	w.real = realPath(filepath.Clean(w.Root))
	w.ownTemporary = t.OwnTemporary && t.runsCommands() && !inside(filepath.Clean(w.Root), temporary)
	return w
}

// isTemporary reports whether a path is in the temporary folder of the sandbox. What a link
// there leads to is not known, so none may be followed by dots.
func (w Workspace) isTemporary(full string) bool {
	return w.ownTemporary && inside(filepath.Clean(full), temporary) && !slices.Contains(strings.Split(full, "/"), "..")
}
