package view

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Result is what "agentctl run -o json" prints: one object at the end of a run,
// with every key always present. Its JSON Schema is published beside this file.
type Result struct {
	// Run is the id of the run, as it is in each event.
	Run string `json:"run"`
	// Object is the Run object of a control plane that executed it; null for any other run.
	Object *Object `json:"object"`
	Agent  string  `json:"agent"`
	// Phase is Succeeded, Failed, Cancelled or Suspended.
	Phase string `json:"phase"`
	// Reason is a word of the closed list ("agentctl help exit-codes").
	Reason string `json:"reason"`
	// ExitCode of the program.
	ExitCode int `json:"exitCode"`
	// Message says why a run did not complete; "" when it did.
	Message string `json:"message"`
	// Output is the final answer.
	Output string `json:"output"`
	// Structured is the output parsed, of an agent with an output.schema that it satisfies;
	// null for any other.
	Structured json.RawMessage `json:"structured"`
	// Steps are the model calls made.
	Steps     int          `json:"steps"`
	ToolCalls []CallResult `json:"toolCalls"`
	// Calls counts ToolCalls by what became of them.
	Calls  message.CallCounts `json:"calls"`
	Tokens Tokens             `json:"tokens"`
	// Cost in US dollars as a decimal; null when a price is unknown, or the tokens
	// of an answer are.
	Cost         *message.Cost      `json:"cost"`
	DurationMs   int64              `json:"durationMs"`
	ChangedFiles []event.FileChange `json:"changedFiles"`
	// ChangedFilesOmitted is how many more files have changed than are listed here.
	ChangedFilesOmitted int `json:"changedFilesOmitted,omitempty"`
	// DiffSummary counts what has changed.
	DiffSummary event.DiffSummary `json:"diffSummary"`
	// Applied is true when the change is in the source folder, because the Workspace
	// has apply: Auto.
	Applied bool `json:"applied,omitempty"`
	// Evidence is what became of spec.evidence of the agent.
	Evidence []event.Evidence `json:"evidence"`
	// Publish are the items that the run has prepared for publication.
	Publish []PublishResult `json:"publish"`
	// ChangesError says why what the run changed is not completely known.
	ChangesError string   `json:"changesError,omitempty"`
	Warnings     []string `json:"warnings"`
	// Turns of a conversation that went on after its end; absent for a run of one turn.
	// What stands beside it is of the whole run, and its end that of the newest turn.
	Turns []TurnResult `json:"turns,omitempty"`
	// Journal is the folder in which everything is written down.
	Journal string `json:"journal"`
}

// Object names an object of a control plane.
type Object struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Tokens counts tokens by kind.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// CallResult is one tool call in a Result.
type CallResult struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Args as they were judged; the model's own text, as a string, when it was
	// no valid JSON object.
	Args json.RawMessage `json:"args"`
	// Decision of the policy: allow, ask, deny or redact; null when the call
	// never reached it.
	Decision *string `json:"decision"`
	// Rule that decided, as policy/rule.
	Rule *string `json:"rule"`
	// Source of the rule, as file:line; null where it is not known.
	Source *string `json:"source"`
	// Approval is approved, rejected, expired or unanswered; null when there was no question.
	Approval *string `json:"approval"`
	// State is pending, running, completed or error.
	State    string `json:"state"`
	ExitCode *int   `json:"exitCode"`
	// Error is a code of the closed list; null when there was none.
	Error      *string `json:"error"`
	DurationMs int64   `json:"durationMs"`
	// Exceeded is what the call tried beyond what it was judged by, and what was denied
	// for that; the record of its result has the rest.
	Exceeded []message.Excess `json:"exceeded"`
}

// Result returns the summary of the run. journal is the folder the run's
// events stand in.
func (r *Run) Result(journal string) Result {
	res := Result{
		Run: r.ID, Agent: r.Started.Agent, Phase: r.Phase, Steps: r.Steps,
		ToolCalls: []CallResult{}, ChangedFiles: []event.FileChange{}, Evidence: []event.Evidence{}, Warnings: []string{},
		Publish: r.publishResults(),
		Tokens:  Tokens(r.Tokens),
		Journal: journal,
	}
	if f := r.Finished; f != nil {
		res.Reason, res.ExitCode, res.Message = f.Reason, f.ExitCode, f.Message
		res.Output, res.Cost, res.DurationMs = f.Output, f.Cost, f.DurationMs
		if f.Structured && json.Valid([]byte(f.Output)) { // what is hidden in it may have broken it
			res.Structured = json.RawMessage(f.Output)
		}
		res.Evidence = append(res.Evidence, f.Evidence...)
	}
	res.ChangedFiles = append(res.ChangedFiles, r.Changes.Files...)
	res.ChangedFilesOmitted, res.ChangesError = r.Changes.Omitted, r.Changes.Error
	if s := r.Changes.Summary; s != nil {
		res.DiffSummary = *s
	}
	res.Applied = r.Applied != nil
	res.Warnings = append(res.Warnings, r.Warnings...)
	res.Calls, res.Turns = r.Calls(), r.turnResults()
	for _, m := range r.Messages {
		for _, c := range m.Calls() {
			res.ToolCalls = append(res.ToolCalls, callResult(c))
		}
	}
	return res
}

// Calls counts the tool calls of the run.
func (r *Run) Calls() (n message.CallCounts) {
	for _, m := range r.Messages {
		for _, c := range m.Calls() {
			n = n.Add(c.Counts())
		}
	}
	return n
}

func callResult(c *message.ToolPart) CallResult {
	out := CallResult{ID: c.CallID, Tool: c.Tool, Args: c.Input, State: string(c.State), Exceeded: []message.Excess{}}
	if len(out.Args) == 0 {
		raw, _ := json.Marshal(c.Raw) // a string always marshals
		out.Args = raw
	}
	if d := c.Decision; d != nil {
		out.Decision, out.Rule, out.Source = optional(string(d.Action)), optional(d.Rule), optional(d.Source)
	}
	out.Approval = optional(string(c.Approval))
	if c.Result != nil {
		out.ExitCode, out.Error = c.Result.ExitCode, optional(string(c.Result.Code))
		out.DurationMs = (c.Result.DurationMicros + 500) / 1000
		if c.Result.Record != nil {
			out.Exceeded = append(out.Exceeded, c.Result.Record.Exceeded...)
		}
	}
	return out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
