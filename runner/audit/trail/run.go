package trail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// begin takes the first event.
func (p *Projection) begin(l line) error {
	var d struct {
		event.RunStarted
		Prompt json.RawMessage `json:"prompt"`
		Inputs json.RawMessage `json:"inputs"`
		Files  json.RawMessage `json:"files"`
	}
	if err := l.decode(&d); err != nil {
		return err
	}
	s := d.RunStarted
	if a := s.Audit; a != nil {
		if a.Version > audit.Version {
			return &UnsupportedError{a.Version}
		}
		key, err := hex.DecodeString(a.Key)
		if err != nil || len(key) < keySize {
			return fmt.Errorf("the key of the digests is not %d bytes in hex", keySize)
		}
		p.version, p.mac = a.Version, hmac.New(sha256.New, key)
	}
	p.run, p.started, p.agent = l.run, s, s.Agent
	p.prompt(l, 1, s.Expansions)
	if s.Parent != nil {
		p.parent = &audit.Parent{Run: s.Parent.Run, Call: s.Parent.Call, Root: s.Parent.Root}
	}
	a := audit.Started{
		User: s.User, Version: s.Version, Mode: s.Mode, Model: s.Model.Name, Provider: s.Model.Provider, ModelID: s.Model.Model,
		Workspace: s.Workspace.Dir, Source: s.Workspace.Source, Strategy: s.Workspace.Strategy,
		Isolation: s.Isolation, OuterIsolation: s.OuterIsolation, Tools: s.Tools, RepositoryPolicies: s.RepositoryPolicies,
		PromptDigest: p.digest(d.Prompt), InputsDigest: p.digest(d.Inputs),
	}
	if g := s.Workspace.Git; g != nil {
		a.GitURL, a.GitCommit = withoutUser(g.URL), g.Commit
	}
	return p.record(l, string(l.kind), func(t audit.Task) audit.Details { a.Task = t; return a })
}

// keySize is the least that the key of the digests has, in bytes.
const keySize = 16

// withoutUser leaves out of a URL what a person may have written there to log in.
func withoutUser(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "" // it cannot be known what is in it
	}
	u.User = nil
	return u.String()
}

func (p *Projection) resume(l line) error {
	var d event.RunResumed
	if err := l.decode(&d); err != nil {
		return err
	}
	p.forget(p.message)
	p.message, p.started.Isolation = "", d.Isolation
	turn, err := p.turn(l, d)
	if err != nil {
		return err
	}
	return p.record(l, string(l.kind), func(t audit.Task) audit.Details {
		return audit.Resumed{Task: t, Attempt: d.Attempt, Version: d.Version, Isolation: d.Isolation, OuterIsolation: d.OuterIsolation, Turn: turn}
	})
}

// turn takes over what a turn has declared; nil where the run only continues.
func (p *Projection) turn(l line, d event.RunResumed) (*audit.Turn, error) {
	t := d.Turn
	if t == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	var raw struct {
		Turn struct {
			Prompt json.RawMessage `json:"prompt"`
			Inputs json.RawMessage `json:"inputs"`
		} `json:"turn"`
	}
	if err := l.decode(&raw); err != nil {
		return nil, err
	}
	p.started = p.started.InTurn(d)
	p.agent, p.functions = t.Agent, map[string]string{}
	p.prompt(l, t.Number, t.Expansions)
	return &audit.Turn{
		Number: t.Number, Agent: t.Agent, User: t.User, Mode: t.Mode, Model: t.Model.Name, Provider: t.Model.Provider, ModelID: t.Model.Model,
		Tools: t.Tools, RepositoryPolicies: t.RepositoryPolicies, PromptDigest: p.digest(raw.Turn.Prompt), InputsDigest: p.digest(raw.Turn.Inputs),
	}, nil
}

func (p *Projection) describe(l line) error {
	var d event.ToolsDescribed
	err := l.decode(&d)
	for _, f := range d.Functions {
		p.functions[f] = d.Tool
	}
	return err
}

func (p *Projection) patch(l line) error {
	var d event.WorkspacePatch
	if err := l.decode(&d); err != nil {
		return err
	}
	p.changes = changes{seq: l.seq, count: len(d.Files) + d.Omitted, unknown: d.Error != ""}
	for _, f := range d.Files[:min(len(d.Files), mostFiles)] {
		p.changes.files = append(p.changes.files, f.Path)
	}
	return nil
}

// finish closes the calls that have no result, unless the run waits for a person, and then
// the run.
func (p *Projection) finish(l line) error {
	var d struct {
		event.RunFinished
		Output json.RawMessage `json:"output"`
		Cost   *string         `json:"cost"`
	}
	if err := l.decode(&d); err != nil {
		return err
	}
	p.forget(p.message)
	p.message = ""
	if d.Phase != suspended {
		for _, c := range p.open() {
			c.State, c.Error = string(message.StateError), string(message.CodeCancelled)
			if err := p.close(l, c); err != nil {
				return err
			}
		}
		p.calls = map[string]*call{}
	}
	f := audit.Finished{
		Phase: d.Phase, Reason: d.Reason, ExitCode: d.ExitCode, DurationMs: d.DurationMs, Steps: d.Steps, Limits: limitsOf(d.Reason, d.Message),
		Tokens: audit.Tokens(d.Tokens), Cost: d.Cost, Calls: p.decisions,
		ChangedFiles: p.changes.files, ChangedFilesCount: p.changes.count, ChangesError: p.changes.unknown, OutputDigest: p.digest(d.Output),
	}
	if p.changes.count > 0 {
		f.EvidenceRefs = []string{p.event(p.changes.seq)}
	}
	return p.record(l, string(l.kind), func(t audit.Task) audit.Details { f.Task = t; return f })
}

// suspended is the phase of a run that waits, as package view calls it.
const suspended = "Suspended"

// limitsOf are the limits that have ended a run.
func limitsOf(why, text string) []string {
	switch why {
	case "MaxSteps":
		return []string{"max_steps"}
	case "DeadlineExceeded":
		return []string{"timeout"}
	case "LoopDetected":
		return []string{"loop_guard"}
	case "ContextExhausted":
		return []string{"context_window"}
	case "BudgetExceeded":
		switch {
		case strings.HasPrefix(text, "limits.maxTokens"):
			return []string{"max_tokens"}
		case strings.HasPrefix(text, "limits.maxCost"):
			return []string{"max_cost"}
		}
		return []string{"shared_budget"}
	}
	return nil
}

// note makes the record of an event that is one by itself.
func (p *Projection) note(l line) error {
	var d audit.Details
	var err error
	read := func(into any) { err = l.decode(into) }
	t := audit.Task{TaskID: p.run}
	switch l.kind {
	case event.TypeWorkspaceApplied:
		var e event.WorkspaceApplied
		read(&e)
		d = audit.Applied{Task: t, By: e.By, Source: e.Source, ChangedFilesCount: e.Files, Already: e.Already}
	case event.TypeRunReverted:
		var e event.RunReverted
		read(&e)
		d = audit.Reverted{Task: t, By: e.By, To: e.To, Undo: e.Undo, ChangedFilesCount: e.Changed}
	case event.TypePublishItem:
		var e event.PublishItem
		read(&e)
		d = audit.Published{Task: t, CallID: l.call, By: e.By, Name: e.Name, Type: e.Kind, Target: e.Target, Key: e.Key, Item: e.Item, State: string(e.State), URL: e.URL}
	case event.TypeEgressConnection:
		var e event.EgressConnection
		read(&e)
		d = audit.Connection{
			Task: t, CallID: l.call, Tools: e.Tools, Host: e.Host, Port: e.Port, Address: e.Address, Decision: string(e.Decision), Rule: e.Rule,
			Sent: e.Sent, Received: e.Received, DurationMs: e.DurationMs, Failed: e.Error != "",
		}
	case event.TypeSecretResolved:
		var e event.SecretResolved
		read(&e)
		s := audit.Secret{Task: t, Secret: e.From + ":" + e.Name, Model: e.Model, Tool: e.Tool, Field: e.Field}
		if e.Tool != "" {
			p.give(e.Tool, s.Secret)
		}
		d = s
	case event.TypeMessageReceived:
		var e struct {
			ID   string          `json:"id"`
			By   string          `json:"by"`
			Text json.RawMessage `json:"text"`
		}
		read(&e)
		d = audit.Message{Task: t, MessageID: e.ID, By: e.By, TextDigest: p.digest(e.Text), TextBytes: length(e.Text)}
	case event.TypeQuestionAnswered:
		var e struct {
			message.Reply
			Answer json.RawMessage `json:"answer"`
		}
		read(&e)
		d = audit.Answer{Task: t, CallID: l.call, QuestionID: e.ID, State: string(e.State), By: e.By, AnswerDigest: p.digest(e.Answer)}
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return p.record(l, string(l.kind), func(audit.Task) audit.Details { return d })
}

// give notes that a tool is given a secret; a resume reads it again.
func (p *Projection) give(tool, secret string) {
	if slices.Contains(p.secrets[tool], secret) {
		return
	}
	// A record that was made keeps its own list.
	p.secrets[tool] = append(p.secrets[tool][:len(p.secrets[tool]):len(p.secrets[tool])], secret)
}
