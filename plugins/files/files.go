// Package files holds the tools that read, search and change the files of a
// workspace, and never any other file.
package files

import (
	"encoding/json"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// Tools returns read, list, glob, grep, codesearch, edit, patch, workspace_fs and write. They share the record of
// files read in a run, which edit and write require. Their metadata passes that record to a
// later process; the tools of two calls of Tools share nothing.
func Tools() []sdk.Tool {
	s := &set{seen: newSeen(), locks: newLocks()}
	return s.tools()
}

func (s *set) tools() []sdk.Tool {
	return []sdk.Tool{
		sdk.New("read", "Read a file of the workspace as numbered lines (2000 lines, 2000 characters a line; page with offset), or the entries of a folder. An image or PDF is shown.", s.read, sdk.OnRecall(s.recall)),
		sdk.New("list", "List a folder: names sorted, folders end with /, sizes in bytes.", s.list),
		sdk.New("glob", "Find files by path pattern; ** spans folders, {a,b} alternates. Respects .gitignore, includes dotfiles.", s.glob),
		sdk.New("grep", "Search file contents by regular expression (RE2); gives file:line:text. Respects .gitignore, skips binary files.", s.grep),
		sdk.New("codesearch", aboutCodeSearch, s.codesearch, sdk.Schema(json.RawMessage(codeSearchSchema))),
		sdk.New("edit", "Replace text in a file that was read before. oldString must match exactly one place unless replaceAll is set. Use edits for several replacements in one file.", s.edit, sdk.OnRecall(s.recall), sdk.Schema(json.RawMessage(editSchema))),
		sdk.New("patch", aboutPatch, s.patch, sdk.OnRecall(s.recallPatch)),
		sdk.New("workspace_fs", aboutFS, s.fs, sdk.OnRecall(s.recall), sdk.Schema(json.RawMessage(fsSchema))),
		sdk.New("write", "Write a whole file, making its folders. An existing file must have been read before.", s.write, sdk.OnRecall(s.recall)),
	}
}

// set is what the tools of one process share.
type set struct {
	seen  *seen
	locks *locks
	// between is called before each step of a patch, by tests; its error fails the step.
	between func(step int) error
	// codeTime is how long codesearch reads files; 0 is the usual time.
	codeTime time.Duration
}
