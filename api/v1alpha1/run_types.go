package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Run is one conversation of an agent: a prompt, its inputs and a workspace.
// Its status reports the progress and the result.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={agentctl,all}
// +kubebuilder:selectablefield:JSONPath=`.spec.agentRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agentRef.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.steps`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.cost`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`,priority=1
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RunSpec   `json:"spec"`
	Status RunStatus `json:"status,omitempty"`
}

// AnnotationStartedBy is the annotation of a Run with the identity that created
// it. The API server of agentd writes it; no client can set or change it.
// On another API server every client can set it, and it proves nothing.
const AnnotationStartedBy = "agentctl.dev/started-by"

// RunSpec is the task. It does not change, except suspend, cancel and
// ttlAfterFinished: a person who approves a call, and the journal, rely on it.
//
// +kubebuilder:validation:XValidation:rule=`self.agentRef == oldSelf.agentRef && (has(self.prompt) ? self.prompt : "") == (has(oldSelf.prompt) ? oldSelf.prompt : "") && has(dyn(self).inputs) == has(dyn(oldSelf).inputs) && (!has(dyn(self).inputs) || dyn(self).inputs == dyn(oldSelf).inputs) && has(self.skillRef) == has(oldSelf.skillRef) && (!has(self.skillRef) || self.skillRef == oldSelf.skillRef) && has(self.policyRefs) == has(oldSelf.policyRefs) && (!has(self.policyRefs) || self.policyRefs == oldSelf.policyRefs) && has(self.workspaceRef) == has(oldSelf.workspaceRef) && (!has(self.workspaceRef) || self.workspaceRef == oldSelf.workspaceRef) && has(self.workspace) == has(oldSelf.workspace) && (!has(self.workspace) || self.workspace == oldSelf.workspace) && has(self.limits) == has(oldSelf.limits) && (has(self.backoffLimit) ? self.backoffLimit : 0) == (has(oldSelf.backoffLimit) ? oldSelf.backoffLimit : 0) && has(self.startDeadline) == has(oldSelf.startDeadline) && (!has(self.startDeadline) || duration(self.startDeadline) == duration(oldSelf.startDeadline))`,message="the spec of a Run is immutable except suspend, cancel and ttlAfterFinished: delete the Run and create it again, or create one with another name",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!(has(self.workspaceRef) && has(self.workspace))",message="give workspaceRef or workspace, not both",fieldPath=".workspace",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule=`!(has(self.skillRef) && has(self.prompt) && self.prompt != "")`,message="the plan of a skill reads no prompt: give its data in inputs",fieldPath=".prompt",reason="FieldValueForbidden"
type RunSpec struct {
	// AgentRef names the agent. Required.
	AgentRef Reference `json:"agentRef"`
	// Prompt is the first user message. Optional: without it the model is asked to
	// carry out the instructions.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Prompt string `json:"prompt,omitempty"`
	// Inputs are data for the agent's inputs schema, or for that of the plan of
	// skillRef.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Inputs *JSON `json:"inputs,omitempty"`
	// SkillRef names a Skill whose plan is carried out step by step in place of
	// asking the agent's model. The agent's tools, policies and limits hold; it need
	// not list the skill. The inputs are those of the plan, and there is no prompt.
	// Default: the model is asked.
	// +optional
	SkillRef *Reference `json:"skillRef,omitempty"`
	// PolicyRefs name policies that judge the calls of this run and of every run
	// that its subagents begin, besides those of the agents. They only narrow: what
	// they deny, ask about or take out applies, their allow rules allow nothing.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PolicyRefs []Reference `json:"policyRefs,omitempty"`
	// WorkspaceRef names a Workspace.
	// +optional
	WorkspaceRef *Reference `json:"workspaceRef,omitempty"`
	// Workspace written in place, instead of workspaceRef. Default: a copy of
	// the current folder; on a control plane, an empty folder.
	// +optional
	Workspace *WorkspaceSpec `json:"workspace,omitempty"`
	// Limits of this run; they may only narrow those of the agent.
	// +optional
	Limits *RunLimits `json:"limits,omitempty"`
	// Cancel ends the run.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
	// Suspend interrupts the run, or keeps it from starting; false continues or
	// starts it.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// StartDeadline is how long the run may wait, on a control plane, until the
	// objects that it names are ready. It then fails with the reason why they are
	// not. A limits.timeout of the run counts from its creation, and bounds
	// the wait as well.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	StartDeadline *metav1.Duration `json:"startDeadline,omitempty"`
	// BackoffLimit is how often a failed run is tried again, from its beginning,
	// when the cause may be temporary: its model, its provider or agentd itself.
	// Every attempt has a separate journal.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	BackoffLimit int32 `json:"backoffLimit,omitempty"`
	// TTLAfterFinished deletes the object this long after its end. Default: kept.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// RunLimits narrow the limits of an agent. For an absent field the limit of the
// agent applies.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxSteps) == has(oldSelf.maxSteps) && (!has(self.maxSteps) || self.maxSteps == oldSelf.maxSteps) && has(self.maxTokens) == has(oldSelf.maxTokens) && (!has(self.maxTokens) || self.maxTokens == oldSelf.maxTokens) && has(self.maxCost) == has(oldSelf.maxCost) && (!has(self.maxCost) || self.maxCost == oldSelf.maxCost) && has(self.maxParallelTools) == has(oldSelf.maxParallelTools) && (!has(self.maxParallelTools) || self.maxParallelTools == oldSelf.maxParallelTools) && has(self.timeout) == has(oldSelf.timeout) && (!has(self.timeout) || duration(self.timeout) == duration(oldSelf.timeout))",message="the spec of a Run is immutable except suspend, cancel and ttlAfterFinished: delete the Run and create it again, or create one with another name",reason="FieldValueForbidden"
type RunLimits struct {
	// MaxSteps bounds the model calls of the run.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxSteps int32 `json:"maxSteps,omitempty"`
	// MaxTokens bounds input plus output tokens of the run.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// MaxCost bounds the money of the run, in US dollars.
	// +optional
	MaxCost Money `json:"maxCost,omitempty"`
	// Timeout bounds the wall time of the run. On a control plane it counts from
	// the creation of the Run: a run that cannot begin ends as well.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// MaxParallelTools bounds the tool calls that run at the same time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	MaxParallelTools int32 `json:"maxParallelTools,omitempty"`
}

// WorkspaceStrategy is how a run gets its files.
// +kubebuilder:validation:Enum=Copy;InPlace;Empty
type WorkspaceStrategy string

// The workspace strategies.
const (
	// StrategyCopy works on a private copy of the source folder.
	StrategyCopy WorkspaceStrategy = "Copy"
	// StrategyInPlace works on the source folder itself.
	StrategyInPlace WorkspaceStrategy = "InPlace"
	// StrategyEmpty starts with an empty folder.
	StrategyEmpty WorkspaceStrategy = "Empty"
)

// WorkspaceSpec declares the files that a run works on.
type WorkspaceSpec struct {
	// Source of the files. Default: the current folder.
	// +optional
	Source *WorkspaceSource `json:"source,omitempty"`
	// Strategy: Copy never touches the source, InPlace works on it directly,
	// Empty starts with nothing.
	// +kubebuilder:default=Copy
	// +optional
	Strategy WorkspaceStrategy `json:"strategy,omitempty"`
	// Exclude lists glob patterns of paths that are not copied, for example node_modules.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Exclude []string `json:"exclude,omitempty"`
	// SizeLimit of the copy, as Kubernetes writes it.
	// +kubebuilder:default="2Gi"
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
	// GrowthLimit is how much disk the calls of the run may add to its files, as
	// Kubernetes writes it. The call that exceeds the limit ends with an error
	// (output_limit), after a delay: see docs/isolation.md.
	// +kubebuilder:default="10Gi"
	// +optional
	GrowthLimit *resource.Quantity `json:"growthLimit,omitempty"`
}

// WorkspaceSource is exactly one source of files.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type WorkspaceSource struct {
	// Path of a folder, relative to the manifest.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Path string `json:"path,omitempty"`
	// Git repository that is cloned when the run begins, with the git of the host.
	// +optional
	Git *GitSource `json:"git,omitempty"`
}

// GitSource is a git repository at a revision. Nothing that the repository brings is
// run: no hook, no filter (files of Git LFS stay pointers), no submodule.
type GitSource struct {
	// URL of the repository: https://HOST/PATH, ssh://USER@HOST/PATH, or file:///PATH of
	// the host. It holds no credentials, and no redirect is followed. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Ref is a branch, a tag, a whole commit id, or a full name such as
	// refs/pull/7/head. Default: the repository's default branch.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Ref string `json:"ref,omitempty"`
	// Depth is how many commits of the history are fetched; 0 is all of them.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Depth *int32 `json:"depth,omitempty"`
	// Auth is how the server knows agentctl; it goes to the host of the URL only, and is
	// not kept with the clone. For https.
	// +optional
	Auth *GitAuth `json:"auth,omitempty"`
}

// GitAuth is a user of a git server.
type GitAuth struct {
	// Username goes with the password. Servers that take tokens ignore it.
	// +kubebuilder:default=x-access-token
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^:[:cntrl:]]*$`
	// +optional
	Username string `json:"username,omitempty"`
	// Password or token, for example {valueFrom: {env: GITHUB_TOKEN}}. Required.
	Password ValueSource `json:"password"`
}

// RunStatus is the state of a run.
type RunStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is a one-word summary for printing.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Attempt counts how often the run was started; absent before the first start.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// Conditions hold Succeeded, and Retrying for a run that is tried again.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Steps are the model calls made.
	// +optional
	Steps int32 `json:"steps,omitempty"`
	// Tokens used so far.
	// +optional
	Tokens *TokenCount `json:"tokens,omitempty"`
	// Calls counts the tool calls by outcome.
	// +optional
	Calls *CallCount `json:"calls,omitempty"`
	// Cost in US dollars; absent when a price or the tokens of an answer are
	// unknown.
	// +optional
	Cost Money `json:"cost,omitempty"`
	// Output is the final answer, cut at 1 KiB; the journal has all of it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Output string `json:"output,omitempty"`
	// ChangedFiles in the workspace.
	// +optional
	ChangedFiles int32 `json:"changedFiles,omitempty"`
	// PendingApprovals are questions that wait for a person.
	// +optional
	PendingApprovals int32 `json:"pendingApprovals,omitempty"`
	// Journal is the record of the run.
	// +optional
	Journal *JournalStatus `json:"journal,omitempty"`
}

// CallCount counts tool calls by outcome. A call may be counted more than once.
type CallCount struct {
	// Done calls ran to a result, whether it was a failure or not.
	Done int32 `json:"done"`
	// Refused calls did not run because a rule or a person refused them, or
	// because the question about them was not answered.
	Refused int32 `json:"refused"`
	// Asked calls were shown to a person, or answered by --approve.
	Asked int32 `json:"asked"`
	// Repaired calls spelled the name of the tool in another way.
	Repaired int32 `json:"repaired"`
}

// TokenCount counts tokens by kind.
type TokenCount struct {
	// Input tokens that were not read from the provider's cache.
	Input int64 `json:"input"`
	// Output tokens, reasoning included.
	Output int64 `json:"output"`
	// Reasoning tokens, a part of output.
	Reasoning int64 `json:"reasoning"`
	// CacheRead tokens.
	CacheRead int64 `json:"cacheRead"`
	// CacheWrite tokens.
	CacheWrite int64 `json:"cacheWrite"`
}

// JournalStatus is the head of a run's journal.
type JournalStatus struct {
	// Path of the journal's folder.
	Path string `json:"path,omitempty"`
	// LastSeq is the number of the last event.
	LastSeq int64 `json:"lastSeq,omitempty"`
	// HeadHash is the hash of the last event: sha256:...
	HeadHash string `json:"headHash,omitempty"`
}

// RunList is a list of runs.
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}
