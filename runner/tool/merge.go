package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
)

const mergeTool = "task_apply"

// Merge is the work of a call that takes over what a subagent has changed in a copy.
type Merge struct {
	// Run is the run of the subagent: run/ID.
	Run string `json:"run"`
	// Files are those that it has added or modified, Deleted those that are gone.
	Files   []string `json:"files,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
}

// Merger makes the changes of a call in the files of the run, all or nothing. A
// *message.CallError says why nothing was changed; any other error ends the run. done means
// that the files had these changes already.
type Merger func(ctx context.Context, call message.ToolCall, m Merge) (done bool, err error)

// merges answers the calls that take over the changes of a subagent.
func merges() HostTool { return HostTool{Tool: mergeTool, Answer: takeOver} }

// completed completes the arguments of such a call: with the id of the run, and where the call
// names no files, with all that it has changed. So what is judged, approved, recorded and
// merged are the same files. copies finds a run by its name.
func completed(raw json.RawMessage, copies func(name string) *message.ChildRun) (json.RawMessage, error) {
	var m Merge
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	child := copies(m.Run)
	if child == nil {
		return nil, fmt.Errorf("no earlier call of task has the result of %q, of an agent that worked on a copy of the files", m.Run)
	}
	m.Run = "run/" + child.Run
	switch c := child.Changes; {
	case c.Unmergeable != "":
		return nil, fmt.Errorf("%s: its changes cannot be taken over: %s", m.Run, c.Unmergeable)
	case len(c.Changed)+len(c.Deleted) == 0:
		return nil, fmt.Errorf("%s has changed no files", m.Run)
	case len(m.Files)+len(m.Deleted) == 0:
		m.Files, m.Deleted = c.Changed, c.Deleted
	default:
		if err := errors.Join(among(m.Files, c.Changed, m.Run+" has added or modified no file"), among(m.Deleted, c.Deleted, m.Run+" has deleted no file")); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}

// among refuses files that are not in a list.
func among(files, all []string, text string) error {
	for _, f := range files {
		if !slices.Contains(all, f) {
			return fmt.Errorf("%s %q", text, f)
		}
	}
	return nil
}

// shownBy is the command that shows what a call takes over.
func shownBy(call message.ToolCall) string {
	var m Merge
	if json.Unmarshal(call.Args, &m) != nil || m.Run == "" {
		return ""
	}
	return "what the files hold: agentctl diff " + m.Run
}

// takeOver merges the files that the call names.
func takeOver(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var m Merge
	if err := json.Unmarshal(call.Args, &m); err != nil {
		return nil, err
	}
	if h.Merge == nil {
		return h.Result(Reply{Output: "nothing can be taken over here", Failed: true})
	}
	done, err := h.Merge(ctx, call, m)
	if refused, ok := errors.AsType[*message.CallError](err); ok {
		return h.Result(Reply{Output: refused.Text, Failed: true, Code: refused.Code})
	}
	if err != nil {
		return nil, err
	}
	reply, err := merged(m, done)
	if err != nil {
		return nil, err
	}
	return h.Result(reply)
}

// merged is the answer to a call whose changes are in the files.
func merged(m Merge, done bool) (Reply, error) {
	type file struct {
		Path string `json:"path"`
	}
	var data struct {
		Files []file `json:"files"`
	}
	text := "taken over from " + m.Run + ":"
	if done {
		text = "the files have these changes of " + m.Run + " already:"
	}
	for _, f := range m.Files {
		text += "\n" + fileName(f)
		data.Files = append(data.Files, file{f})
	}
	for _, f := range m.Deleted {
		text += "\n" + fileName(f) + " (deleted)"
		data.Files = append(data.Files, file{f})
	}
	metadata, err := json.Marshal(data)
	return Reply{Output: text, Title: m.Run, Metadata: metadata, Writes: true}, err
}
