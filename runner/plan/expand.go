package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/prompt"
)

// Span is a part of a prompt, in bytes.
type Span = prompt.Span

// The tools that put something into a prompt, as they are called.
const (
	readTool = "read"
	bashTool = "bash"
	taskTool = "task"
)

// findMentions scans the text of the author of the prompt, before anything is put into it.
// A prompt that came from elsewhere is not scanned: stdin, a file, a message, the objects of
// a control plane, a model.
func (p *Plan) findMentions(o *Options) (err error) {
	switch {
	case p.modelless():
	case o.template != nil:
		if p.mentions, err = o.template.Mentions(); err != nil {
			return fmt.Errorf("command /%s: %w", o.Command, err)
		}
	case o.Prompt != "" && o.Authored:
		p.mentions, err = prompt.Mentions(o.Prompt, o.Data...)
	case o.Prompt == "" && len(o.Documents) == 0 && p.Run != nil:
		p.mentions, err = prompt.Mentions(p.Run.Spec.Prompt)
	}
	if err != nil {
		return fmt.Errorf("the prompt: %w", err)
	}
	return nil
}

// expand finds out what the mentions of the prompt ask for. Files are those of the workspace,
// as they are now.
func (p *Plan) expand(o *Options) error {
	if p.Expansions = nil; len(p.mentions) == 0 {
		p.Expansions = o.RecordedExpansions
		return nil
	}
	var agents []string
	for _, s := range p.Agent.Spec.Subagents {
		agents = append(agents, s.Name)
	}
	found, err := prompt.Targets(p.mentions, p.exists(o), agents)
	if err != nil {
		return reason.Usagef("the prompt: %w", err).WithHint("a text that is only data is given with --input, -p @FILE or -p -")
	}
	p.mentions = nil
	for _, t := range found {
		x, err := p.expansion(t)
		if err != nil {
			return err
		}
		p.Expansions = append(p.Expansions, x)
	}
	return nil
}

// expansion is the call that a mention asks for, or the agent that it names.
func (p *Plan) expansion(t prompt.Target) (message.Expansion, error) {
	x, args := message.Expansion{Text: t.Text, Tool: readTool}, map[string]any{"path": t.Path}
	switch {
	case t.Agent != "":
		x.Tool, x.Agent = taskTool, t.Agent
	case t.Command != "":
		x.Tool, args = bashTool, map[string]any{"command": t.Command}
	case t.First > 0:
		args["offset"], args["limit"] = t.First, t.Last-t.First+1
	}
	if !slices.Contains(p.CallNames(), x.Tool) {
		return x, reason.Usagef("the prompt asks for %s, and agent %q has no tool %q", t.Text, p.Agent.Name, x.Tool).
			WithHint(fmt.Sprintf("add the tool to spec.tools of the agent, or write %c%s, which is only text", t.Text[0], t.Text))
	}
	if t.Agent != "" {
		x.Tool = ""
		return x, nil
	}
	var err error
	x.Args, err = json.Marshal(args)
	return x, err
}

// exists returns what reports whether there is a file or a folder of the workspace.
func (p *Plan) exists(o *Options) func(string) bool {
	dir := p.Workspace.Source
	if e := o.Earlier; e != nil && e.Files != "" {
		dir = e.Files
	}
	return func(path string) bool {
		if !filepath.IsAbs(path) {
			if dir == "" {
				return false
			}
			path = filepath.Join(dir, path)
		}
		_, err := os.Lstat(path)
		return err == nil
	}
}

// Named is the place of a prompt that names an agent; "" where none does.
func (p *Plan) Named() string {
	for _, x := range p.Expansions {
		if x.Agent != "" {
			return x.Text
		}
	}
	return ""
}
