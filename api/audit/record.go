// Package audit is the audit log of a run and the receipt of one: data for programs that do not read journals.
//
// The log is a projection of the journal: one record for each call, approval, connection,
// secret reference, and for the begin and the end of the run. What calls were given and what
// they returned is in it as keyed digests only.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Version of the projection, as event.AuditLog names it.
const Version = 1

// FileName is the name of the log in the folder of a run.
const FileName = "audit.log.jsonl"

// Record is one line of the log.
type Record struct {
	// Timestamp is the time of the event, UTC with milliseconds (ISO 8601).
	Timestamp string `json:"timestamp"`
	// EventType is tool.<id> for a call, <id> being its call name, else the type of the
	// event in the journal.
	EventType string `json:"event_type"`
	// Seq is the number of the event in the journal.
	Seq int64 `json:"seq"`
	// Run, Agent, and Parent, the call that has started the run, if one has.
	Run     string  `json:"run"`
	Agent   string  `json:"agent"`
	Parent  *Parent `json:"parent,omitempty"`
	Details Details `json:"details"`
}

// Append appends a record as one line of the log, with its newline.
func Append(dst []byte, r Record) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("audit record of event %d: %w", r.Seq, err)
	}
	return buf.Bytes(), nil
}

// Parent is the call that has started a run, and the run at the top of the tree.
type Parent struct {
	Run  string `json:"run"`
	Call string `json:"call"`
	Root string `json:"root"`
}

// Details are what a record says besides. The set of types is closed.
type Details interface{ details() }

// Kinds returns empty details of every type with the event type of their records: for schemas
// and tables. That of calls is "tool.".
func Kinds() []Kind {
	return []Kind{
		{"run.started", Started{}},
		{"run.resumed", Resumed{}},
		{"secret.resolved", Secret{}},
		{"message.received", Message{}},
		{"tool.", Call{}},
		{"approval.decided", Approval{}},
		{"question.answered", Answer{}},
		{"egress.connection", Connection{}},
		{"workspace.applied", Applied{}},
		{"run.reverted", Reverted{}},
		{"publish.item", Published{}},
		{"run.finished", Finished{}},
	}
}

// Kind is a type of records.
type Kind struct {
	EventType string
	Details   Details
}

// Task names the run, as the details of every record do.
type Task struct {
	// TaskID is the id of the run.
	TaskID string `json:"task_id"`
}

func (Task) details() {}

// Call is a tool call that has ended, or that the end of the run has ended.
type Call struct {
	Task
	// StepID is step_ and the number of the model call that asked for it, or prompt_ and the
	// number of the turn whose author has asked for it in the prompt; CallID is the id of
	// the call within the run.
	StepID string `json:"step_id"`
	CallID string `json:"call_id"`
	// Tool is the call name; shortened, if no tool can have it.
	Tool string `json:"tool"`
	// Workspace is the folder that the tools see.
	Workspace string `json:"workspace"`
	// TaskPrompt is the argument task_prompt or prompt, at most 200 characters of it;
	// OutputMode and TimeoutSeconds are the arguments of these names.
	TaskPrompt     string   `json:"task_prompt,omitempty"`
	OutputMode     string   `json:"output_mode,omitempty"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	// ExitCode of the program behind the call; null where there is none.
	ExitCode *int `json:"exit_code"`
	// DurationMs is the time of the tool itself.
	DurationMs int64 `json:"duration_ms"`
	// OutputLen is the length in bytes of the output, as it is recorded. StdoutLen and
	// StderrLen are what the tool reports in its metadata.
	OutputLen int64  `json:"output_len"`
	StdoutLen *int64 `json:"stdout_len,omitempty"`
	StderrLen *int64 `json:"stderr_len,omitempty"`
	// ChangedFiles are those that the tool reports, at most 100 of ChangedFilesCount;
	// absent where it does not report them. Those of the whole run are in run.finished.
	ChangedFiles      []string `json:"changed_files,omitempty"`
	ChangedFilesCount *int     `json:"changed_files_count,omitempty"`
	// DiffSummary, ToolVersion and OpencodeVersion are what the tool reports.
	DiffSummary     string `json:"diff_summary,omitempty"`
	ToolVersion     string `json:"tool_version,omitempty"`
	OpencodeVersion string `json:"opencode_version,omitempty"`
	// EvidenceRefs are the places of what is too large for the journal, as run/ID#SEQ: the
	// event that names the blob; and what the tool reports.
	EvidenceRefs []string `json:"evidence_refs,omitempty"`
	// ApprovalID is that of the newest question about the call.
	ApprovalID string `json:"approval_id,omitempty"`
	// RiskLevel is R0 to R3; "" for a call that was not judged.
	RiskLevel string `json:"risk_level"`

	// State is completed or error, of a call that is in progress pending or running; Error
	// is a code of the closed list, "" when there was none.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Limits are those that the call has met: timeout, output, loop_guard, calls_per_answer.
	Limits []string `json:"limits,omitempty"`
	// Decision of the policy, allow, ask, deny or redact; null when the call never reached
	// it. Rule decided, and RuleSource is its file and line, of a refusal or a question.
	Decision   *string `json:"decision"`
	Rule       string  `json:"rule,omitempty"`
	RuleSource string  `json:"rule_source,omitempty"`
	// PolicyWarnings counts the warnings of policies that do not enforce.
	PolicyWarnings int `json:"policy_warnings,omitempty"`
	// Approval is how the newest question about the call ended; absent without one.
	Approval *Outcome `json:"approval,omitempty"`
	// ArgsDigest and ResultDigest are hmac-sha256: and the digest, with the key of the run,
	// of the arguments and of the text of the result, as JSON in the journal; ArgsBytes and
	// ResultBytes their lengths.
	ArgsDigest   string `json:"args_digest,omitempty"`
	ArgsBytes    int64  `json:"args_bytes"`
	ResultDigest string `json:"result_digest,omitempty"`
	ResultBytes  int64  `json:"result_bytes"`
	// Attempt counts how often the tool was asked; 0 is never, more than 1 is after a crash.
	Attempt int `json:"attempt"`
	// Isolation is the level at which the tool runs.
	Isolation string `json:"isolation"`
	// Secrets are the references whose values the tool is given, as env:NAME, file:PATH or
	// exec:PROGRAM.
	Secrets []string `json:"secrets,omitempty"`
	// ChildRun is the run that the call has started.
	ChildRun string `json:"child_run,omitempty"`
}

// Outcome is how a question ended.
type Outcome struct {
	// State is approved, rejected, expired or unanswered.
	State string `json:"state"`
	// By is who has answered, for example jane@pts/3, or "onAsk: Deny".
	By string `json:"by"`
	// Scope is Once or Always; "" where nothing was approved.
	Scope string `json:"scope,omitempty"`
}

// Approval is the end of a question whether a call may run (approval.decided).
type Approval struct {
	Task
	StepID string `json:"step_id"`
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// ApprovalID is approval_ and the number of the event that asks.
	ApprovalID string `json:"approval_id"`
	Outcome
	// Reason that was given, at most 200 characters of it.
	Reason string `json:"reason,omitempty"`
	// Rule that asks, and RuleSource its file and line.
	Rule       string `json:"rule"`
	RuleSource string `json:"rule_source,omitempty"`
	RiskLevel  string `json:"risk_level"`
	// WaitedMs is the time from the question to its end.
	WaitedMs int64 `json:"waited_ms"`
	// Request is the id of an answer from outside the process of the run.
	Request string `json:"request,omitempty"`
	// Remembered counts the entries that are allowed from now on.
	Remembered int `json:"remembered,omitempty"`
	// EndRun says that the run ends with the refusal.
	EndRun bool `json:"end_run,omitempty"`
}

// Started is the begin of a run (run.started).
type Started struct {
	Task
	User    string `json:"user"`
	Version string `json:"version"`
	Mode    string `json:"mode,omitempty"`
	// Model by its name in the manifests, with provider and model as the provider knows them.
	Model    string `json:"model"`
	Provider string `json:"provider"`
	ModelID  string `json:"model_id,omitempty"`
	// Workspace is the folder that the tools see, Source the one its files come from.
	Workspace string `json:"workspace"`
	Source    string `json:"source,omitempty"`
	Strategy  string `json:"strategy"`
	// GitURL, without credentials, and GitCommit of a repository that was cloned.
	GitURL    string `json:"git_url,omitempty"`
	GitCommit string `json:"git_commit,omitempty"`
	Isolation string `json:"isolation"`
	// OuterIsolation is what AGENTCTL_OUTER_ISOLATION declares.
	OuterIsolation string   `json:"outer_isolation,omitempty"`
	Tools          []string `json:"tools,omitempty"`
	// RepositoryPolicies are those that the repository has brought.
	RepositoryPolicies []string `json:"repository_policies,omitempty"`
	// PromptDigest and InputsDigest are digests as those of a call.
	PromptDigest string `json:"prompt_digest,omitempty"`
	InputsDigest string `json:"inputs_digest,omitempty"`
}

// Resumed is another process that continues the run (run.resumed).
type Resumed struct {
	Task
	Attempt        int    `json:"attempt"`
	Version        string `json:"version"`
	Isolation      string `json:"isolation"`
	OuterIsolation string `json:"outer_isolation,omitempty"`
	// Turn is set where a run goes on that had ended.
	Turn *Turn `json:"turn,omitempty"`
}

// Turn is one more prompt to a run that had ended. Its fields are as those of Started.
type Turn struct {
	Number             int      `json:"number"`
	Agent              string   `json:"agent"`
	User               string   `json:"user,omitempty"`
	Mode               string   `json:"mode,omitempty"`
	Model              string   `json:"model"`
	Provider           string   `json:"provider"`
	ModelID            string   `json:"model_id,omitempty"`
	Tools              []string `json:"tools,omitempty"`
	RepositoryPolicies []string `json:"repository_policies,omitempty"`
	PromptDigest       string   `json:"prompt_digest,omitempty"`
	InputsDigest       string   `json:"inputs_digest,omitempty"`
}

// Finished is the end of a run, or of its work until it is resumed (run.finished).
type Finished struct {
	Task
	// Phase is Succeeded, Failed, Cancelled or Suspended, Reason a word of the closed list.
	Phase      string `json:"phase"`
	Reason     string `json:"reason"`
	ExitCode   int    `json:"exit_code"`
	DurationMs int64  `json:"duration_ms"`
	Steps      int    `json:"steps"`
	// Limits are those that have ended the run: max_steps, max_tokens, max_cost,
	// shared_budget, timeout, loop_guard, context_window.
	Limits []string `json:"limits,omitempty"`
	Tokens Tokens   `json:"tokens"`
	// Cost in US dollars; null where it is not known.
	Cost *string `json:"cost"`
	// Calls that were judged, by decision.
	Calls Decisions `json:"calls"`
	// ChangedFiles are at most 100 of ChangedFilesCount; ChangesError is set where what the
	// run changed is not completely known.
	ChangedFiles      []string `json:"changed_files,omitempty"`
	ChangedFilesCount int      `json:"changed_files_count"`
	ChangesError      bool     `json:"changes_error,omitempty"`
	// EvidenceRefs is the event that names the diff and the change.
	EvidenceRefs []string `json:"evidence_refs,omitempty"`
	// OutputDigest of the answer.
	OutputDigest string `json:"output_digest,omitempty"`
}

// Tokens counts tokens by kind.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Decisions counts calls by the decision of the policy, and those that were refused: that
// did not run because of a rule or of a person, or because no one answered.
type Decisions struct {
	Allow   int `json:"allow"`
	Ask     int `json:"ask"`
	Deny    int `json:"deny"`
	Redact  int `json:"redact"`
	Refused int `json:"refused"`
}

// Connection is a connection that a contained tool asked for (egress.connection).
type Connection struct {
	Task
	// CallID where only one call was running, else "".
	CallID string `json:"call_id,omitempty"`
	// Tools that share the network the connection came from.
	Tools []string `json:"tools"`
	Host  string   `json:"host"`
	Port  int      `json:"port"`
	// Address that was dialled; "" when nothing was.
	Address  string `json:"address,omitempty"`
	Decision string `json:"decision"`
	// Rule is the entry of spec.network.allow, or what forbade the connection.
	Rule       string `json:"rule,omitempty"`
	Sent       int64  `json:"sent"`
	Received   int64  `json:"received"`
	DurationMs int64  `json:"duration_ms"`
	// Failed is set for an allowed connection that failed or was cut.
	Failed bool `json:"failed,omitempty"`
}

// Secret is a secret reference that was read (secret.resolved).
type Secret struct {
	Task
	// Secret is env:NAME, file:PATH or exec:PROGRAM.
	Secret string `json:"secret"`
	// Model or Tool that is given the value.
	Model string `json:"model,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Field string `json:"field"`
}

// Applied is a change that was applied to the source folder (workspace.applied).
type Applied struct {
	Task
	// By is who has applied it after the end of the run; "" is the run itself.
	By                string `json:"by,omitempty"`
	Source            string `json:"source"`
	ChangedFilesCount int    `json:"changed_files_count"`
	// Already is set if the folder had the change before.
	Already bool `json:"already,omitempty"`
}

// Reverted is a run that had ended and was taken back to a message (run.reverted).
type Reverted struct {
	Task
	// By is who has done it, for example "jane@pts/3".
	By string `json:"by"`
	// To is the id of the first message that is taken back. Undo is set if that was undone
	// instead: the messages are there again.
	To   string `json:"to"`
	Undo bool   `json:"undo,omitempty"`
	// ChangedFilesCount is the number of files that were changed by it.
	ChangedFilesCount int `json:"changed_files_count"`
}

// Published is what a person did with an item that a call has prepared (publish.item).
type Published struct {
	Task
	CallID string `json:"call_id"`
	By     string `json:"by"`
	Name   string `json:"name"`
	// Type is Comment, PullRequest or Webhook.
	Type   string `json:"type"`
	Target string `json:"target"`
	Key    string `json:"key"`
	// Item is the hash of what is sent and of its target.
	Item string `json:"item"`
	// State is begun, sent, found or failed.
	State string `json:"state"`
	URL   string `json:"url,omitempty"`
}

// Message is a message that somebody sent to the run (message.received).
type Message struct {
	Task
	MessageID  string `json:"message_id"`
	By         string `json:"by"`
	TextDigest string `json:"text_digest,omitempty"`
	TextBytes  int64  `json:"text_bytes"`
}

// Answer is the end of a question that a running call has asked (question.answered).
type Answer struct {
	Task
	CallID     string `json:"call_id"`
	QuestionID string `json:"question_id"`
	// State is answered, refused, expired or unanswered.
	State        string `json:"state"`
	By           string `json:"by,omitempty"`
	AnswerDigest string `json:"answer_digest,omitempty"`
}
