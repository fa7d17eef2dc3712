package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// CodingTask is the work of a call for a coding agent of others.
type CodingTask struct {
	// Program is the one that the tool declares, with its defaults.
	Program v1alpha1.CodingProgram
	Prompt  string
	Mode    v1alpha1.CodingMode
	// Path is the folder of the run's files that it gets, "." for all of them; Paths, below
	// it, are what the work is about.
	Path  string
	Paths []string
	// Model is the name of the Model that it asks; "" is that of the program.
	Model   string
	Timeout time.Duration
	Session string
	Args    []string
}

// CodingEnd is how the program of a call has ended.
type CodingEnd struct {
	message.Coding
	// Text is its answer; Why and Warning are those of coder.Ended.
	Text, Why, Warning string
	Exit               coder.Exit
	Stdout, Stderr     coder.Printed
	Took               time.Duration
	// Workspace is the name of the copy; Files are what was changed in it, and Added and
	// Removed the lines.
	Workspace      string
	Files          []CodedFile
	Added, Removed int
}

// CodedFile is a changed file; its hashes are "" where there was none.
type CodedFile struct {
	Path   string `json:"path"`
	Status string `json:"status"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Coders runs the program of a call to its end. A *message.CallError is a refusal that the
// model reads; any other error ends the run. It is called for one call at a time.
type Coders func(ctx context.Context, d *Definition, call message.ToolCall, t CodingTask, progress func(string)) (*CodingEnd, error)

// codes and codesOpencode answer the calls for coding agents of others.
func codes() HostTool         { return HostTool{Tool: builtin.CodingAgent, Answer: code} }
func codesOpencode() HostTool { return HostTool{Tool: builtin.OpencodeRun, Answer: code} }

// codingArgs are the arguments of such a call; those of opencode_run have other names.
type codingArgs struct {
	Agent   string   `json:"agent,omitempty"`
	Prompt  string   `json:"prompt,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	Path    string   `json:"path,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Model   string   `json:"model,omitempty"`
	Timeout int      `json:"timeout,omitempty"`
	Session string   `json:"session,omitempty"`

	WorkspacePath  string `json:"workspace_path,omitempty"`
	TaskPrompt     string `json:"task_prompt,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"`
	OutputMode     string `json:"output_mode,omitempty"`

	Args []string `json:"additional_args,omitempty"`
}

// coded completes the arguments of a call and refuses those that its tool does not allow: so
// what is judged, approved and recorded is what is done.
func coded(d *Definition, raw json.RawMessage) (json.RawMessage, error) {
	var a codingArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if d.Shipped == builtin.OpencodeRun {
		a.OutputMode = cmp.Or(a.OutputMode, string(v1alpha1.CodingDiff))
		a.TimeoutSeconds = cmp.Or(a.TimeoutSeconds, defaultCodingTimeout)
	} else {
		a.Mode, a.Path = cmp.Or(a.Mode, string(v1alpha1.CodingDiff)), cmp.Or(a.Path, ".")
		a.Timeout = cmp.Or(a.Timeout, defaultCodingTimeout)
		if programs := codingPrograms(d.Coding, d.Shipped); len(programs) > 0 {
			a.Agent = cmp.Or(a.Agent, string(programs[0].Agent))
		}
	}
	t, err := a.task(d)
	if err != nil {
		return nil, err
	}
	if d.Shipped == builtin.OpencodeRun {
		a.WorkspacePath = t.Path
	} else {
		a.Path = t.Path
	}
	return json.Marshal(a)
}

// defaultCodingTimeout is in seconds.
const defaultCodingTimeout = 300

// codingPrograms are those that a tool declares, with their defaults.
func codingPrograms(s *v1alpha1.CodingSource, shipped string) []v1alpha1.CodingProgram {
	var declared []v1alpha1.CodingProgram
	if s != nil {
		declared = slices.Clone(s.Programs)
	}
	if len(declared) == 0 {
		for _, d := range coder.Drivers() {
			declared = append(declared, v1alpha1.CodingProgram{Agent: v1alpha1.CodingAgent(d.Name)})
		}
	}
	declared = slices.DeleteFunc(declared, func(p v1alpha1.CodingProgram) bool {
		return shipped == builtin.OpencodeRun && p.Agent != opencode
	})
	for i := range declared {
		if driver, ok := coder.DriverOf(string(declared[i].Agent)); ok {
			declared[i].Version = cmp.Or(declared[i].Version, driver.Tested)
			if len(declared[i].Command) == 0 {
				declared[i].Command = []string{driver.Program}
			}
		}
	}
	return declared
}

const opencode v1alpha1.CodingAgent = "opencode"

// codingModes are those that a tool allows.
func codingModes(s *v1alpha1.CodingSource) []v1alpha1.CodingMode {
	if s == nil || len(s.Modes) == 0 {
		return []v1alpha1.CodingMode{v1alpha1.CodingDiff, v1alpha1.CodingReport}
	}
	return s.Modes
}

// task is the work that checked arguments describe.
func (a *codingArgs) task(d *Definition) (t CodingTask, err error) {
	agent := cmp.Or(a.Agent, string(opencode))
	programs := codingPrograms(d.Coding, d.Shipped)
	at := slices.IndexFunc(programs, func(p v1alpha1.CodingProgram) bool { return string(p.Agent) == agent })
	if at < 0 {
		return t, fmt.Errorf("agent %q is not declared by the Tool", agent)
	}
	driver, ok := coder.DriverOf(agent)
	if !ok {
		return t, fmt.Errorf("agent %q: no driver", agent)
	}
	t = CodingTask{
		Program: programs[at], Prompt: cmp.Or(a.TaskPrompt, a.Prompt), Mode: v1alpha1.CodingMode(cmp.Or(a.OutputMode, a.Mode)), Model: a.Model,
		Timeout: time.Duration(cmp.Or(a.TimeoutSeconds, a.Timeout)) * time.Second, Session: a.Session, Args: a.Args,
	}
	if modes := codingModes(d.Coding); !slices.Contains(modes, t.Mode) {
		return t, fmt.Errorf("mode %s is not among those of the Tool (spec.source.builtin.coding.modes): %s", t.Mode, joined(modes))
	}
	if err := driver.Check(a.Args); err != nil {
		return t, err
	}
	if t.Path, err = insideOf(cmp.Or(a.WorkspacePath, a.Path, ".")); err != nil {
		return t, err
	}
	for _, p := range a.Paths {
		inner, err := insideOf(p)
		if err != nil {
			return t, err
		}
		t.Paths = append(t.Paths, inner)
	}
	return t, nil
}

func joined(modes []v1alpha1.CodingMode) string {
	words := make([]string, len(modes))
	for i, m := range modes {
		words[i] = string(m)
	}
	return strings.Join(words, ", ")
}

// insideOf is a path in the workspace, cleaned. One that leads out of it, or that names what
// is git's own, is refused: links are found when the call runs.
func insideOf(p string) (string, error) {
	if strings.ContainsRune(p, 0) || strings.ContainsRune(p, '\\') {
		return "", fmt.Errorf("path %q: a NUL or a backslash", p)
	}
	if path.IsAbs(p) {
		return "", fmt.Errorf("path %q: write it relative to the workspace", p)
	}
	parts := strings.Split(p, "/")
	if slices.Contains(parts, "..") {
		return "", fmt.Errorf("path %q: .. leads out of the workspace", p)
	}
	if slices.Contains(parts, ".git") {
		return "", fmt.Errorf("path %q: no call works on the folder .git", p)
	}
	return path.Clean(p), nil
}

// code runs a program to its end.
func code(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var a codingArgs
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, err
	}
	t, err := a.task(h.Tool)
	if err != nil {
		return h.Result(Reply{Output: err.Error(), Failed: true, Code: message.CodeTool})
	}
	if h.Coders == nil {
		return h.Result(Reply{Output: "no coding agent can be run here", Failed: true, Code: message.CodeTool})
	}
	end, err := h.Coders(ctx, h.Tool, call, t, h.Progress)
	if refused, ok := errors.AsType[*message.CallError](err); ok {
		return h.Result(Reply{Output: refused.Text, Failed: true, Code: refused.Code})
	}
	if err != nil {
		return nil, err
	}
	reply, err := codedReply(h.Tool, call, h.Run, end)
	if err != nil {
		return nil, err
	}
	result, err := h.Result(reply)
	if err != nil {
		return nil, err
	}
	result.Coding = &end.Coding
	return result, nil
}

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

// codingClaim is what a person reads, besides the arguments, who is asked about a call of a
// coding agent of others.
func codingClaim(d *Definition, call message.ToolCall) string {
	var a codingArgs
	if json.Unmarshal(call.Args, &a) != nil {
		return ""
	}
	t, err := a.task(d)
	if err != nil {
		return ""
	}
	where := "all files of the run"
	if t.Path != "." {
		where = t.Path
	}
	then := "the files of the run stay as they are"
	switch t.Mode {
	case v1alpha1.CodingInPlace:
		then = "if it succeeds, what it has changed is made in the files of the run at once"
	case v1alpha1.CodingReport:
		then = "it may change nothing"
	case v1alpha1.CodingDiff:
	}
	return fmt.Sprintf("starts %s %s on a copy of %s, for at most %s; it executes what its model says, in a sandbox without a network but its model; %s",
		t.Program.Agent, t.Program.Version, where, t.Timeout, then)
}
