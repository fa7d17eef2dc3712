package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Agent declares the instructions and the model of an agent, the tools it may be
// offered, the policies that judge its calls, and its limits.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ag,categories={agentctl,all}
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.modelRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AgentSpec   `json:"spec"`
	Status AgentStatus `json:"status,omitempty"`
}

// AgentMode is where an agent may be used.
// +kubebuilder:validation:Enum=Primary;Subagent;All
type AgentMode string

// The modes of an Agent.
const (
	ModePrimary  AgentMode = "Primary"
	ModeSubagent AgentMode = "Subagent"
	ModeAll      AgentMode = "All"
)

// AgentSpec is the behaviour of an agent.
type AgentSpec struct {
	// Preset names a shipped agent, from which this one takes description,
	// instructions, contextFiles, tools and policyRefs as far as it does not set them
	// itself: build changes code, plan and explore only look (the workspace is read-only
	// for their shell), general does one piece of work for another agent, compaction is
	// an agent whose model writes the summaries of all agents beside it, title names a
	// conversation. Its instructions begin with a text for the family of the model.
	// +kubebuilder:validation:Enum=build;plan;explore;general;compaction;title
	// +optional
	Preset string `json:"preset,omitempty"`
	// Description says in one sentence what the agent is for. Other agents
	// read it when they choose a subagent. Optional.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// Mode: the agent is started by a run (Primary), by another agent (Subagent),
	// or by both (All).
	// +kubebuilder:default=All
	// +optional
	Mode AgentMode `json:"mode,omitempty"`
	// ModelRef names the Model that answers. Required.
	ModelRef Reference `json:"modelRef"`
	// Instructions are the system prompt. Optional.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	Instructions string `json:"instructions,omitempty"`
	// ContextFiles are names of files whose text is added to the system prompt
	// as untrusted project context. The nearest file wins; each is cut at 32 KiB.
	// Example: ["AGENTS.md"].
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ContextFiles []string `json:"contextFiles,omitempty"`
	// Tools the model may be offered. The name of a built-in tool (read, grep,
	// glob, list, edit, write, bash) needs no Tool manifest.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Tools []AgentTool `json:"tools,omitempty"`
	// PolicyRefs name policies that judge this agent's calls, besides every
	// Policy whose appliesTo selects the agent. The shipped policies baseline, ci,
	// no-secrets and read-only need no Policy manifest; a manifest of the same name
	// takes the place of the shipped one.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PolicyRefs []Reference `json:"policyRefs,omitempty"`
	// Skills the agent may load with the tool skill, which an agent with skills has
	// without listing it. They stand in the system prompt by name and description.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Skills []Reference `json:"skills,omitempty"`
	// SkillFolders are folders of the workspace; each folder with a SKILL.md in them is
	// a skill that the agent may load, too. Such a skill is text that the project
	// brings along: its script becomes no tool. One of spec.skills with the same name
	// takes its place. Example: [.agents/skills].
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	SkillFolders []string `json:"skillFolders,omitempty"`
	// Subagents this agent may start with the tool task, which an agent with
	// subagents has without listing it. Each call starts a run of its own.
	// Example: [{name: explore}].
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Subagents []Subagent `json:"subagents,omitempty"`
	// Diagnostics check files after a successful call has changed them. What they
	// find is added to the result of the call. They run in a sandbox, without network,
	// in which the workspace is read-only, and are judged as a command of bash.
	// Example: [{name: vet, files: ["**/*.go"], command: ["go", "vet", "{folders}"]}].
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// Limits end a run that reaches them.
	// +kubebuilder:default={}
	// +optional
	Limits Limits `json:"limits,omitempty"`
	// LoopGuard stops a model that repeats itself.
	// +kubebuilder:default={}
	// +optional
	LoopGuard LoopGuard `json:"loopGuard,omitempty"`
	// Context defines what happens when the conversation grows too long for the model.
	// +kubebuilder:default={}
	// +optional
	Context ContextPolicy `json:"context,omitempty"`
	// Inputs describe the data a run hands to the agent; instructions and
	// prompts read it as ${inputs.name}.
	// +optional
	Inputs *InputContract `json:"inputs,omitempty"`
	// Output describes the shape of the final answer.
	// +optional
	Output *OutputContract `json:"output,omitempty"`
	// Evidence is what has to be true of a run besides its answer. Where one of these
	// expressions is not true, the run has not succeeded: it ends with reason
	// EvidenceMissing and exit code 6. Example: [{name: tests-passed, expression:
	// "calls.passed('go', 'test')", message: the tests never passed}].
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Evidence []Evidence `json:"evidence,omitempty"`
	// Publish is what a run may prepare for publication with the tool publish, which an agent
	// with publications has without listing it. The run sends nothing itself; "agentctl
	// apply-changes RUN --publish" shows the items and sends them. Example: [{name: review,
	// type: Comment, forge: {type: GitHub, repository: acme/shop, number:
	// "${inputs.number}"}, credential: {valueFrom: {env: GITHUB_TOKEN}}}].
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Publish []Publication `json:"publish,omitempty"`
	// Approvals define what happens to a question that is not answered.
	// +kubebuilder:default={}
	// +optional
	Approvals ApprovalPolicy `json:"approvals,omitempty"`
}

// AgentTool is one entry of an agent's tool list.
type AgentTool struct {
	// Name of a Tool, or of a built-in tool. Required.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Include keeps only the functions that match one of these globs, for a Tool that
	// provides several: an MCP server, or a plugin whose Tool names none of its functions.
	// The globs are on the functions' own names, for example get_*. Default: all.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Include []string `json:"include,omitempty"`
	// Exclude drops the functions that match one of these globs.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Exclude []string `json:"exclude,omitempty"`
	// WorkspaceAccess narrows that of the Tool for this agent: ReadOnly shows its
	// programs a workspace that they cannot change. It never widens. Default: that of
	// the Tool.
	// +optional
	WorkspaceAccess WorkspaceAccess `json:"workspaceAccess,omitempty"`
}

// SubagentCeiling is which policies of the agent that starts a subagent bound it.
// +kubebuilder:validation:Enum=Run;Parent
type SubagentCeiling string

// The ceilings of a subagent.
const (
	CeilingRun    SubagentCeiling = "Run"
	CeilingParent SubagentCeiling = "Parent"
)

// SubagentWorkspace is which files a subagent works on.
// +kubebuilder:validation:Enum=Shared;Copy;None
type SubagentWorkspace string

// The workspaces of a subagent.
const (
	// SharedWorkspace is the files of the agent that starts it.
	SharedWorkspace SubagentWorkspace = "Shared"
	// CopiedWorkspace is a copy of them.
	CopiedWorkspace SubagentWorkspace = "Copy"
	// NoWorkspace is an empty folder.
	NoWorkspace SubagentWorkspace = "None"
)

// Subagent is an agent that another may start.
type Subagent struct {
	// Name of an Agent whose mode is Subagent or All. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Ceiling: the calls of the subagent are judged by its own policies, and by
	// policies that only narrow what they allow: those of the run
	// (spec.policyRefs), and those whose appliesTo selects an agent that has started
	// it. With Parent, also by the policyRefs of this agent; with Run they judge
	// only the call that starts the subagent.
	// +kubebuilder:default=Run
	// +optional
	Ceiling SubagentCeiling `json:"ceiling,omitempty"`
	// Workspace: the subagent works on the files of this agent (Shared), on a copy of
	// them as they are when it starts (Copy), or in an empty folder that is not merged
	// back (None). What it has changed in a copy is in the files of this agent after a
	// call of task_apply, which policies judge by each changed file.
	// +kubebuilder:default=Shared
	// +optional
	Workspace SubagentWorkspace `json:"workspace,omitempty"`
}

// Limits are hard: they are checked before the step they would forbid. A Run
// may only narrow those of its Agent.
type Limits struct {
	// MaxSteps bounds the model calls of one run. The run then ends with reason
	// MaxSteps and exit code 5.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxSteps int32 `json:"maxSteps,omitempty"`
	// MaxTokens bounds input (cache reads included) plus output tokens of the
	// whole run. No default. Reason BudgetExceeded, exit code 5.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// MaxCost bounds the money one run may spend, in US dollars. No default.
	// Needs a known price: pricing of the Model, or a list price. Reason BudgetExceeded, exit code 5.
	// +optional
	MaxCost Money `json:"maxCost,omitempty"`
	// Timeout bounds the wall time of one run. Reason DeadlineExceeded, exit code 5.
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// MaxParallelTools bounds the tool calls that run at the same time.
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	MaxParallelTools int32 `json:"maxParallelTools,omitempty"`
	// MaxDepth bounds how deep subagents may start subagents: with 1 the agent's
	// subagents start none, with 0 the agent starts none. The limit of the agent
	// that a run starts applies to all below it.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	// +optional
	MaxDepth *int32 `json:"maxDepth,omitempty"`
}

// LoopAction is what happens to a call that repeats.
// +kubebuilder:validation:Enum=Ask;Stop;Nudge
type LoopAction string

// The answers to a repeated call.
const (
	LoopAsk   LoopAction = "Ask"
	LoopStop  LoopAction = "Stop"
	LoopNudge LoopAction = "Nudge"
)

// LoopGuard ends a run that repeats itself without progress. A step is progress
// when it changed the contents of the workspace or brought a new result.
// +kubebuilder:validation:XValidation:rule="!has(self.identicalCalls) || self.identicalCalls != 1",message="1 would allow no call: 0 switches the detector off, 2 is the least"
// +kubebuilder:validation:XValidation:rule="!has(self.cycles) || self.cycles != 1",message="1 would allow no call: 0 switches the detector off, 2 is the least"
// +kubebuilder:validation:XValidation:rule="!has(self.repeatedTextBytes) || self.repeatedTextBytes == 0 || self.repeatedTextBytes >= 4096",message="0 switches the detector off, 4096 is the least"
type LoopGuard struct {
	// IdenticalCalls is the number of equal consecutive calls at which the
	// detector stops: with 3 the third call does not run. The number is ten times
	// as large for calls whose results differ, that wait ("sleep", a call of two
	// seconds and more), or between which the workspace changed. Calls with a new
	// result do not count. 0 switches the detector off.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	IdenticalCalls *int32 `json:"identicalCalls,omitempty"`
	// Cycles is the number of rounds of a repeating sequence of two to four
	// calls at which the detector stops. It is ten times as large, or calls do not
	// count, in the cases of identicalCalls. 0 switches the detector off.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Cycles *int32 `json:"cycles,omitempty"`
	// StalledSteps is the number of steps in a row without a new result, after
	// which a step that repeats an earlier call is not run. A result is not new
	// when an equal call had it before, also with other calls in between, and no
	// file changed. Calls that differ in spacing, options or a description are
	// equal. A step that waits, or fails in a new way, counts a quarter; it counts
	// three quarters when the model says the same as before. 0 switches the
	// detector off.
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	StalledSteps *int32 `json:"stalledSteps,omitempty"`
	// InvalidAnswers is the number of answers in a row with invalid calls only at
	// which the run ends. A call is invalid when its tool is unknown, or its
	// arguments are not JSON or do not satisfy the schema. 0 switches the detector
	// off.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	InvalidAnswers *int32 `json:"invalidAnswers,omitempty"`
	// RepeatedTextBytes is how many bytes at the end of one answer or its reasoning
	// may repeat the text before them. It is four times as large when numbers in
	// them differ or they consist of a few characters, and 16 times in the
	// arguments of a call. The answer is stopped then, and kept. For a model with a
	// smaller output limit the number is smaller, but not below 32768. 0 switches
	// the detector off.
	// +kubebuilder:default=65536
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16777216
	// +optional
	RepeatedTextBytes *int32 `json:"repeatedTextBytes,omitempty"`
	// OnDetect: Stop ends the run with reason LoopDetected (exit code 5), Nudge
	// warns the model once and then stops, Ask asks a person and stops when the
	// call is not allowed for the second time.
	// +kubebuilder:default=Stop
	// +optional
	OnDetect LoopAction `json:"onDetect,omitempty"`
}

// ContextPolicy defines how a long conversation is shortened.
type ContextPolicy struct {
	// CompactAtPercent is the share of the model's context window, in percent,
	// at which the conversation is shortened: a summary replaces all but the
	// prompt and the newest steps. Where the window is not known (spec.contextWindow
	// of the Model, or agentctl models) that happens only when the provider refuses
	// a request as too long. 0 switches this off: the run then ends with reason
	// ContextExhausted and exit code 5.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	CompactAtPercent *int32 `json:"compactAtPercent,omitempty"`
	// ModelRef names the Model that writes the summaries. Default: the agent's.
	// +optional
	ModelRef *Reference `json:"modelRef,omitempty"`
	// KeepRecentTokens is how much of the newest steps is kept word for word.
	// +kubebuilder:default=15000
	// +kubebuilder:validation:Minimum=0
	// +optional
	KeepRecentTokens *int64 `json:"keepRecentTokens,omitempty"`
	// PruneToolOutput takes old tool output out of the conversation before
	// anything is summarised; the model can read it again.
	// +kubebuilder:default=true
	// +optional
	PruneToolOutput *bool `json:"pruneToolOutput,omitempty"`
}

// InputContract is the shape of Run.spec.inputs.
type InputContract struct {
	// Schema is a JSON Schema (2020-12) of type object. Required.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Schema JSON `json:"schema"`
}

// OutputContract is the shape of the final answer.
type OutputContract struct {
	// Schema is a JSON Schema (2020-12) that the final answer, parsed as JSON,
	// must satisfy. Required.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Schema JSON `json:"schema"`
	// Retries is how often the model is shown its mistakes before the run ends
	// with reason OutputInvalid and exit code 6.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries *int32 `json:"retries,omitempty"`
}

// Evidence is something that has to be true of a run when it has ended.
type Evidence struct {
	// Name by which results and reports call it. Required.
	// Example: tests-passed.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Expression in CEL over calls, decisions, result and files. Required.
	// Example: "calls.passed('go', 'test') && 'README.md' in files".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression"`
	// Message says what is missing where the expression is not true.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// OnAsk is what happens to a question that is not answered.
// +kubebuilder:validation:Enum=Deny;Wait;Suspend
type OnAsk string

// The headless answers to a question.
const (
	OnAskDeny    OnAsk = "Deny"
	OnAskWait    OnAsk = "Wait"
	OnAskSuspend OnAsk = "Suspend"
)

// ApprovalPolicy bounds how a run waits for a person.
type ApprovalPolicy struct {
	// OnAsk is the answer when no person can be asked: Deny makes the call an
	// error the model reads and the run continues; Wait waits until timeout and
	// then denies; Suspend stops the run, to be resumed later (exit code 3).
	// +kubebuilder:default=Deny
	// +optional
	OnAsk OnAsk `json:"onAsk,omitempty"`
	// Timeout bounds how long a question stays open.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
}

// AgentStatus is what the controller found out about an agent.
type AgentStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AgentList is a list of agents.
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Agent `json:"items"`
}
