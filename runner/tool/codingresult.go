package tool

import (
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// codingResult is what the model reads. A text that is not known is null, not empty.
type codingResult struct {
	Success bool                  `json:"success"`
	Outcome message.CodingOutcome `json:"outcome"`
	Reason  string                `json:"reason,omitempty"`
	Warning string                `json:"warning,omitempty"`

	ExitCode     *int     `json:"exit_code"`
	ChangedFiles any      `json:"changed_files"`
	DiffSummary  string   `json:"diff_summary"`
	DurationMs   int64    `json:"duration_ms"`
	EvidenceRefs []string `json:"evidence_refs"`
	TakeOver     string   `json:"take_over,omitempty"`

	Agent     string      `json:"agent"`
	Version   string      `json:"version"`
	Session   string      `json:"session,omitempty"`
	Workspace string      `json:"workspace"`
	Usage     codingUsage `json:"usage"`

	Text          string `json:"text"`
	StdoutExcerpt string `json:"stdout_excerpt"`
	StderrExcerpt string `json:"stderr_excerpt"`
}

// codingUsage is what the model of a program has used; a cost that is not known is null.
type codingUsage struct {
	Requests int           `json:"requests"`
	Tokens   int64         `json:"tokens"`
	Cost     *message.Cost `json:"cost"`
}

// codingMetadata is what the audit log takes over; see runner/audit/trail.
type codingMetadata struct {
	Agent           string                `json:"agent"`
	Outcome         message.CodingOutcome `json:"outcome"`
	ChangedFiles    []CodedFile           `json:"changed_files"`
	DiffSummary     string                `json:"diff_summary"`
	ToolVersion     string                `json:"tool_version,omitempty"`
	OpencodeVersion string                `json:"opencode_version,omitempty"`
	EvidenceRefs    []string              `json:"evidence_refs"`
	StdoutLen       int64                 `json:"stdout_len"`
	StderrLen       int64                 `json:"stderr_len"`
	Workspace       string                `json:"workspace"`
	Files           []CodedFile           `json:"files,omitempty"`
}

// longestAnswer is how much of an answer is in the result, in characters: the log has all.
const longestAnswer = 16000

// mostCoded bounds the changed files in a result by name.
const mostCoded = 200

// codedReply is the answer to a call whose program has ended.
func codedReply(d *Definition, call message.ToolCall, run string, end *CodingEnd) (Reply, error) {
	refs := end.refs()
	files := end.Files[:min(len(end.Files), mostCoded)]
	r := codingResult{
		Success: end.Outcome == message.CodingCompleted, Outcome: end.Outcome, Reason: end.Why, Warning: end.Warning,
		DiffSummary: end.summary(), DurationMs: end.Took.Milliseconds(), EvidenceRefs: refs,
		Agent: end.Agent, Version: end.Version, Session: end.Session, Workspace: end.Workspace,
		Usage: codingUsage{Requests: end.Requests, Tokens: end.Tokens.Total(), Cost: end.Cost},
		Text:  coder.Clip(end.Text, longestAnswer), StdoutExcerpt: coder.Head(string(end.Stdout.Kept)), StderrExcerpt: coder.Tail(string(end.Stderr.Kept)),
		ChangedFiles: files,
	}
	if end.Unpriced {
		r.Usage.Cost = nil
	}
	if end.Estimated != nil {
		r.Usage.Tokens += end.Estimated.Total()
	}
	if d.Shipped == builtin.OpencodeRun {
		names := make([]string, len(files))
		for i, f := range files {
			names[i] = f.Path
		}
		r.ChangedFiles = names
	}
	reply := Reply{Title: end.Agent + ": " + string(end.Outcome), Writes: end.Mode == string(v1alpha1.CodingInPlace) && len(end.Files) > 0 && r.Success}
	if end.Exit.Signal == "" {
		code := end.Exit.Code
		r.ExitCode, reply.ExitCode = &code, &code
	} else {
		reply.Signal = end.Exit.Signal
	}
	if copied := end.InCopy(run, call.ID); copied != nil {
		r.TakeOver = "task_apply with run: run/" + copied.Run
		if copied.Changes.Unmergeable != "" {
			r.TakeOver = "not possible: " + copied.Changes.Unmergeable
		}
	}
	switch end.Outcome {
	case message.CodingCompleted:
	case message.CodingTimeout:
		reply.Failed, reply.Code = true, message.CodeTimeout
	case message.CodingIncomplete, message.CodingFailed, message.CodingDenied:
		reply.Failed, reply.Code = true, message.CodeTool
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return reply, err
	}
	m := codingMetadata{
		Agent: end.Agent, Outcome: end.Outcome, ChangedFiles: files, DiffSummary: r.DiffSummary, ToolVersion: end.Version, EvidenceRefs: refs,
		StdoutLen: end.Stdout.Total, StderrLen: end.Stderr.Total, Workspace: end.Workspace,
	}
	if end.Agent == string(opencode) {
		m.OpencodeVersion = end.Version
	}
	if reply.Writes {
		m.Files = files
	}
	reply.Output = string(text)
	reply.Metadata, err = json.Marshal(m)
	return reply, err
}

// refs are the blobs that prove what the call did.
func (e *CodingEnd) refs() []string {
	refs := []string{}
	for _, id := range []string{e.Log, e.Errors, e.Diff, e.Before, e.After} {
		if id != "" {
			refs = append(refs, "blob:"+id)
		}
	}
	return refs
}

// summary is a change in words.
func (e *CodingEnd) summary() string {
	if len(e.Files) == 0 {
		return "no files changed"
	}
	many := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	return fmt.Sprintf("%s changed, %s added, %s removed", many(len(e.Files), "file"), many(e.Added, "line"), many(e.Removed, "line"))
}
