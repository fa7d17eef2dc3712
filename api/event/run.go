package event

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
)

// RunStarted opens a run. It is durable before anything else happens.
type RunStarted struct {
	// Agent and Model by name.
	Agent string           `json:"agent"`
	Model message.ModelRef `json:"model"`
	// Prompt is the first user message, and Files are attached to it. Their content
	// is kept in blobs.
	Prompt string          `json:"prompt"`
	Files  []message.File  `json:"files,omitempty"`
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Expansions are what the author of the prompt asks for in its text. Calls among them
	// belong to the message of the prompt; the id of the first is its id and "-expand1".
	Expansions []message.Expansion `json:"expansions,omitempty"`
	// Origin of the prompt, without the inputs that are filled in, and InputOrigins of
	// each input; absent in runs of earlier versions.
	Origin       *message.Origin           `json:"origin,omitempty"`
	InputOrigins map[string]message.Origin `json:"inputOrigins,omitempty"`
	// Workspace the run works on.
	Workspace Workspace `json:"workspace"`
	// Plan is the blob that holds the resolved manifests and the wishes of the
	// command line: all that a resume needs.
	Plan string `json:"plan,omitempty"`
	// Mode of the agent, and the call names of its tools.
	Mode  string   `json:"mode,omitempty"`
	Tools []string `json:"tools,omitempty"`
	// Isolation the host gives: None, Sandbox or Container.
	Isolation string `json:"isolation"`
	// ToolIsolation is the level of each tool that runs at another one, by call name; Remote
	// for one whose server is elsewhere.
	ToolIsolation map[string]string `json:"toolIsolation,omitempty"`
	// OuterIsolation is what AGENTCTL_OUTER_ISOLATION declared, or "".
	OuterIsolation string `json:"outerIsolation,omitempty"`
	// Version of agentctl.
	Version string `json:"version"`
	// User is who began the run: an account of the machine, or an identity of the
	// control plane. "" is not known.
	User string `json:"user,omitempty"`
	// Parent is the run whose call has started this one; nil for a run that a person
	// or a control plane has started.
	Parent *Parent `json:"parent,omitempty"`
	// ForkedFrom is the run whose beginning the events are that follow; nil for a run with a
	// beginning of its own.
	ForkedFrom *Forked `json:"forkedFrom,omitempty"`
	// RepositoryPolicies are the policies that the repository has brought, as it calls
	// them. They only tighten.
	RepositoryPolicies []string `json:"repositoryPolicies,omitempty"`
	// Prices by which the cost of the run is counted, of the models whose price is known.
	Prices []ModelPrice `json:"prices,omitempty"`
	// Limits of the run; nil in runs of earlier versions.
	Limits *Limits `json:"limits,omitempty"`
	// Audit describes the audit log of the run; absent in runs of earlier versions, which
	// have none.
	Audit *AuditLog `json:"audit,omitempty"`
}

// Limits are what a turn may use at most. What is 0 is not limited.
type Limits struct {
	MaxSteps  int   `json:"maxSteps,omitempty"`
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// MaxCost in dollars.
	MaxCost message.Cost `json:"maxCost,omitempty"`
	// TimeoutMs is the wall time.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// AuditLog describes the audit log of a run, which is a projection of its journal.
type AuditLog struct {
	// Version of the projection.
	Version int `json:"version"`
	// Key of the digests in the log, 16 random bytes in hex. Without it a digest does not
	// confirm a guess of what was digested.
	Key string `json:"key"`
}

// Forked is the place in another run with which a run begins.
type Forked struct {
	Run string `json:"run"`
	// Message and Call are what the place is before; both are absent at the end.
	Message string `json:"message,omitempty"`
	Call    string `json:"call,omitempty"`
	// Seq is the number of the last event before the place, Hash that event's.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash,omitempty"`
}

// Parent is the call that has started a run.
type Parent struct {
	// Run and Call that have started it, Root is the run at the top of the tree.
	Run  string `json:"run"`
	Call string `json:"call"`
	Root string `json:"root"`
	// Agents are those above this one, that of the root first.
	Agents []string `json:"agents"`
	// Continues is the run whose conversation the prompt holds; "" for none.
	Continues string `json:"continues,omitempty"`
}

// RunResumed records that another process continues a run that was interrupted
// or suspended, or has ended and is given another turn. A request that was not answered
// is void and sent again.
type RunResumed struct {
	// Attempt counts the processes that have worked on the run; the first resume is 2.
	Attempt int `json:"attempt"`
	// Isolation, OuterIsolation and Version as in run.started, of this process.
	Isolation      string `json:"isolation"`
	OuterIsolation string `json:"outerIsolation,omitempty"`
	Version        string `json:"version"`
	// Prices as in run.started, of this process.
	Prices []ModelPrice `json:"prices,omitempty"`
	// Turn is what the run goes on with that had ended; nil for one that had not.
	Turn *Turn `json:"turn,omitempty"`
	// Fork is what a fork declares otherwise from here on, with the prompt of the turn that
	// it is in; nil where nothing is.
	Fork *Turn `json:"fork,omitempty"`
}

// Turn is one more prompt to a run that has ended, with a plan of its own. It is durable
// before anything else happens.
type Turn struct {
	// Number of the turn; the one that begins a run is 1.
	Number int `json:"number"`
	// Agent to ToolIsolation, RepositoryPolicies and Limits are as in run.started.
	Agent         string                    `json:"agent"`
	Model         message.ModelRef          `json:"model"`
	Prompt        string                    `json:"prompt"`
	Files         []message.File            `json:"files,omitempty"`
	Inputs        json.RawMessage           `json:"inputs,omitempty"`
	Expansions    []message.Expansion       `json:"expansions,omitempty"`
	Origin        *message.Origin           `json:"origin,omitempty"`
	InputOrigins  map[string]message.Origin `json:"inputOrigins,omitempty"`
	Plan          string                    `json:"plan,omitempty"`
	Mode          string                    `json:"mode,omitempty"`
	Tools         []string                  `json:"tools,omitempty"`
	ToolIsolation map[string]string         `json:"toolIsolation,omitempty"`
	// User is who began the turn.
	User               string   `json:"user,omitempty"`
	RepositoryPolicies []string `json:"repositoryPolicies,omitempty"`
	Limits             *Limits  `json:"limits,omitempty"`
	// Changed says what is declared otherwise than in the turn before, for people.
	Changed []string `json:"changed,omitempty"`
	// Forgets: what was approved for always before this turn is asked about again.
	Forgets bool `json:"forgets,omitempty"`
	// Fresh: the files are as their source is now, and changes count from here on.
	Fresh bool `json:"fresh,omitempty"`
}

// InTurn returns what holds for a run since a process has taken it up: in a new turn, what
// the turn has declared in place of the first event.
func (s RunStarted) InTurn(d RunResumed) RunStarted {
	t := d.Turn
	if t == nil {
		t = d.Fork
	}
	if t == nil {
		return s
	}
	s.Agent, s.Model, s.Prompt, s.Files, s.Inputs, s.Origin, s.InputOrigins = t.Agent, t.Model, t.Prompt, t.Files, t.Inputs, t.Origin, t.InputOrigins
	s.Expansions = t.Expansions
	s.Plan, s.Mode, s.Tools, s.ToolIsolation, s.User, s.RepositoryPolicies = t.Plan, t.Mode, t.Tools, t.ToolIsolation, t.User, t.RepositoryPolicies
	s.Isolation, s.OuterIsolation, s.Version, s.Prices, s.Limits = d.Isolation, d.OuterIsolation, d.Version, d.Prices, t.Limits
	return s
}

// ToolsDescribed records the functions of a Tool that provides several: each is a tool
// for the model. It is recorded before the first model request.
type ToolsDescribed struct {
	// Tool is the call name of the Tool, Functions are those of its chosen functions.
	Tool      string   `json:"tool"`
	Functions []string `json:"functions"`
	// Definitions is the blob with their descriptions and parameters.
	Definitions string `json:"definitions"`
}

// Workspace says which files a run works on.
type Workspace struct {
	// Source is the folder the files come from, "" for an empty workspace.
	Source string `json:"source"`
	// Dir is the folder the tools see.
	Dir string `json:"dir"`
	// Strategy is Copy, InPlace or Empty.
	Strategy string `json:"strategy"`
	// Git is the repository that was cloned for the run; nil for files of a folder.
	Git *GitClone `json:"git,omitempty"`
	// Apply is Manual, Auto or Never; "" counts as Manual.
	Apply string `json:"apply,omitempty"`
	// Retain is Always, OnFailure or Never; "" counts as Always.
	Retain string `json:"retain,omitempty"`
}

// GitClone is a repository whose files a run works on.
type GitClone struct {
	// URL and Ref are those of the manifest; Ref is "" for the default branch.
	URL string `json:"url"`
	Ref string `json:"ref,omitempty"`
	// Commit is the id of the commit that Ref led to when the run began.
	Commit string `json:"commit"`
}

// RunFinished closes a run. It is durable before the program exits.
type RunFinished struct {
	// Phase is Succeeded, Failed, Cancelled or Suspended.
	Phase string `json:"phase"`
	// Reason is a word of package reason.
	Reason string `json:"reason"`
	// ExitCode of the command line.
	ExitCode int `json:"exitCode"`
	// Message says why, for people; "" when the run completed.
	Message string `json:"message,omitempty"`
	// Agent and Model are those of the turn that has ended, by their names in the manifests;
	// "" in the first turn of a run that was not forked, whose run.started has them.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	// Hint is the next step for people.
	Hint string `json:"hint,omitempty"`
	// Output is the final answer, or the partial one of a run that failed.
	Output string `json:"output"`
	// Structured: the output is JSON that satisfies output.schema of the agent.
	Structured bool `json:"structured,omitempty"`
	Steps      int  `json:"steps"`
	// Tokens of the whole run.
	Tokens message.Usage `json:"tokens"`
	// Cost in US dollars as a decimal; nil when a price is unknown, or the tokens
	// of an answer are.
	Cost *message.Cost `json:"cost"`
	// DurationMs is the time processes worked on the run.
	DurationMs int64 `json:"durationMs"`
	// Evidence is what became of the evidence that the agent declares; absent where it
	// declares none, and in a run that was suspended.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence is something that has to be true of a run, and whether it is.
type Evidence struct {
	Name string `json:"name"`
	Met  bool   `json:"met"`
	// Message says what is missing, as the agent declares it, or why the expression could
	// not be evaluated; "" where it is met.
	Message string `json:"message,omitempty"`
}

// UserMessage is a message to the model after the first prompt.
type UserMessage struct {
	Text string `json:"text"`
	// Synthetic text was written by the runner, for example to say what is
	// wrong with an answer.
	Synthetic bool `json:"synthetic,omitempty"`
	// Origin of the text; absent in runs of earlier versions.
	Origin *message.Origin `json:"origin,omitempty"`
}

// MessageReceived is a message that somebody sent to the run while it went on. It
// is durable before the next request, with which the model reads it.
type MessageReceived struct {
	message.Incoming
	// Origin of the text; absent in runs of earlier versions.
	Origin *message.Origin `json:"origin,omitempty"`
}

// StepStart opens a step: one model call and the tool calls it asks for.
type StepStart struct {
	// Step counts from 1.
	Step int `json:"step"`
}

// StepFinish closes a step.
type StepFinish struct {
	Step   int            `json:"step"`
	Finish message.Finish `json:"finish"`
	Tokens message.Usage  `json:"tokens"`
	Cost   *message.Cost  `json:"cost,omitempty"`
	// Calls of the step by what became of them; absent in a step without calls.
	Calls *message.CallCounts `json:"calls,omitempty"`
}
