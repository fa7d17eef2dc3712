package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Policy declares which calls are allowed, asked about, rewritten or refused.
// Rules of all policies of an agent count together, in any order: deny beats ask, ask beats redact, redact beats allow, allow
// beats the default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=agentctl
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PolicySpec   `json:"spec"`
	Status PolicyStatus `json:"status,omitempty"`
}

// Action is the decision of a rule. Decisions are spelled the same in manifests,
// JSON output and events.
// +kubebuilder:validation:Enum=allow;ask;deny;redact
type Action string

// The actions, weakest first.
const (
	ActionAllow  Action = "allow"
	ActionRedact Action = "redact"
	ActionAsk    Action = "ask"
	ActionDeny   Action = "deny"
)

// DefaultAction is what happens to a call that no rule decides.
// +kubebuilder:validation:Enum=byRisk;deny;ask;allow
type DefaultAction string

// The default actions. ByRisk allows R0, allows R1 inside the workspace, asks
// for R2 unless the call is contained, and asks for R3 each time.
const (
	DefaultByRisk DefaultAction = "byRisk"
	DefaultDeny   DefaultAction = "deny"
	DefaultAsk    DefaultAction = "ask"
	DefaultAllow  DefaultAction = "allow"
)

// PolicyMode defines whether a policy's decisions count.
// +kubebuilder:validation:Enum=Enforce;Warn;Audit
type PolicyMode string

// The policy modes.
const (
	PolicyEnforce PolicyMode = "Enforce"
	PolicyWarn    PolicyMode = "Warn"
	PolicyAudit   PolicyMode = "Audit"
)

// RulePhase is when a rule is evaluated.
// +kubebuilder:validation:Enum=Call;Result
type RulePhase string

// The phases of a rule.
const (
	OnCall   RulePhase = "Call"
	OnResult RulePhase = "Result"
)

// PolicySpec is a set of rules.
type PolicySpec struct {
	// AppliesTo selects agents by label. Absent: the policy counts only where an
	// Agent names it in policyRefs.
	// +optional
	AppliesTo *AppliesTo `json:"appliesTo,omitempty"`
	// Mode: Enforce decides, Warn adds a warning to the run, Audit is journaled only.
	// +kubebuilder:default=Enforce
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`
	// Params are constants that rules read as params.name.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Params *JSON `json:"params,omitempty"`
	// Variables are CEL expressions, computed at most once per decision and read
	// as variables.name.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Variables []Variable `json:"variables,omitempty"`
	// Permissions are a list as OpenCode writes it: the last matching entry wins
	// inside this list, and the list then counts like one rule.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Permissions []Permission `json:"permissions,omitempty"`
	// Rules with CEL conditions. Names are unique in the policy.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Rules []Rule `json:"rules,omitempty"`
	// Default is what happens to a call that no rule decides. The strictest
	// default of all policies counts. Without any: byRisk.
	// +optional
	Default DefaultAction `json:"default,omitempty"`
	// Tests are calls with the decision this policy must give.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Tests []PolicyTest `json:"tests,omitempty"`
}

// AppliesTo selects what a policy judges.
type AppliesTo struct {
	// AgentSelector matches labels of agents; an empty one matches every agent.
	// +optional
	AgentSelector *metav1.LabelSelector `json:"agentSelector,omitempty"`
}

// Variable is a named CEL expression.
type Variable struct {
	// Name, read as variables.name. Required.
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// Expression in CEL. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// Permission is one entry of a permission list.
type Permission struct {
	// Permission is a tool's name, a glob over names, or external_directory. Required.
	// +kubebuilder:validation:MinLength=1
	Permission string `json:"permission"`
	// Pattern over what the call does: each simple command of a shell script, or
	// each path. "*" matches any run of characters; a final " *" is optional.
	// Default: "*".
	// +kubebuilder:default="*"
	// +optional
	Pattern string `json:"pattern,omitempty"`
	// Action for a call that matches. Required.
	// +kubebuilder:validation:Enum=allow;ask;deny
	Action Action `json:"action"`
}

// Rule is a named decision with a condition.
type Rule struct {
	// Name of the rule, shown with each decision as policy/name. Required.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Match selects the calls of the rule; every list that is given must match.
	// Default: every call.
	// +optional
	Match Match `json:"match,omitempty"`
	// On is when the rule is evaluated: on the Call, or on its Result.
	// +kubebuilder:default=Call
	// +optional
	On RulePhase `json:"on,omitempty"`
	// When is a CEL condition. Default: true.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	When string `json:"when,omitempty"`
	// Action when the condition holds. Required.
	Action Action `json:"action"`
	// Redact is what a redact rule removes.
	// +optional
	Redact *Redact `json:"redact,omitempty"`
	// MessageExpression is a CEL expression of type string: the reason of the
	// decision, for the model and the user.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// Match selects calls by structure. Entries of a list are globs; an empty list
// matches every call.
type Match struct {
	// Tools by call name.
	// +optional
	Tools []string `json:"tools,omitempty"`
	// Builtins by the name of the built-in tool behind the call.
	// +optional
	Builtins []string `json:"builtins,omitempty"`
	// Categories of tools.
	// +optional
	Categories []Category `json:"categories,omitempty"`
	// Effects of tools: one of them has to match.
	// +optional
	Effects []Effect `json:"effects,omitempty"`
	// Risks of tools. An allow rule lifts R3 only when it lists R3 here.
	// +optional
	Risks []Risk `json:"risks,omitempty"`
	// Agents by name.
	// +optional
	Agents []string `json:"agents,omitempty"`
}

// Redact is what is removed from a call's arguments or from its result.
type Redact struct {
	// Fields of the arguments or of a JSON result whose values are removed.
	// +optional
	Fields []string `json:"fields,omitempty"`
	// Secrets removes what looks like a credential.
	// +optional
	Secrets bool `json:"secrets,omitempty"`
}

// PolicyTest is a call and the decision the policy must give.
type PolicyTest struct {
	// Name of the case. Required.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Agent the call comes from. Optional.
	// +optional
	Agent string `json:"agent,omitempty"`
	// Call that the policy decides. Required.
	Call TestCall `json:"call"`
	// Result of the call. When it is given, the rules with on: Result are evaluated,
	// and expect is about the result: deny withholds it, redact changes it, allow
	// leaves it as it is. Optional.
	// +optional
	Result *TestResult `json:"result,omitempty"`
	// Session is what the run has done before the call. Default: nothing.
	// +optional
	Session *TestSession `json:"session,omitempty"`
	// Links are symbolic links in the workspace, which is otherwise empty.
	// Optional, for example [{path: notes, to: /etc}].
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Links []TestLink `json:"links,omitempty"`
	// Expect is the decision. Required.
	Expect Action `json:"expect"`
	// Rule that must decide: a rule of the policy, permissions for its list, or
	// default. Optional.
	// +optional
	Rule string `json:"rule,omitempty"`
	// Message that must be shown; ${workspace} stands for the workspace's folder.
	// Optional.
	// +optional
	Message string `json:"message,omitempty"`
}

// TestCall is a tool call written by hand.
type TestCall struct {
	// Tool by call name. Required.
	// +kubebuilder:validation:MinLength=1
	Tool string `json:"tool"`
	// Args of the call. Relative paths start in the workspace, ${workspace} stands
	// for its folder. Default: {}.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Args *JSON `json:"args,omitempty"`
}

// TestResult is a tool's result written by hand.
type TestResult struct {
	// Text of the result. Default: none.
	// +optional
	Text string `json:"text,omitempty"`
	// Error is the reason of a result that is an error. Optional, for example ToolError.
	// +optional
	Error string `json:"error,omitempty"`
	// ExitCode of the program. Default: 0.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// Want is the text after redaction, when expect is redact. Optional.
	// +optional
	Want *string `json:"want,omitempty"`
}

// TestSession is what a run has done before a call.
type TestSession struct {
	// Calls before this one, by tool. Optional, for example {bash: 3}.
	// +optional
	Calls map[string]int32 `json:"calls,omitempty"`
	// Denials before. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Denials int32 `json:"denials,omitempty"`
}

// TestLink is a symbolic link in the workspace of a case.
type TestLink struct {
	// Path of the link, relative to the workspace. Required.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// To is the target of the link. Required.
	// +kubebuilder:validation:MinLength=1
	To string `json:"to"`
}

// PolicyStatus reports whether a policy can be used.
type PolicyStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyList is a list of policies.
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}
