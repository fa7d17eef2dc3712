package tool

import (
	"cmp"
	"encoding/json"
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
