package v1alpha1

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Test is a run of an agent with a scripted or recorded model on files of its own, and
// what has to be true of it. agentctl test carries it out; a control plane only reports
// whether it could be.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=agentctl
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agentRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TestSpec   `json:"spec"`
	Status TestStatus `json:"status,omitempty"`
}

// TestSpec declares a run, and what has to be true of it. With cases it is what they
// have in common.
type TestSpec struct {
	// AgentRef names the agent. Required.
	AgentRef Reference `json:"agentRef"`
	// Prompt is the first user message, as that of a Run.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Prompt string `json:"prompt,omitempty"`
	// Inputs are data for the agent's inputs schema.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Inputs *JSON `json:"inputs,omitempty"`
	// ModelRef names the Model that answers: one of provider scripted or cassette, so
	// that no key and no network is needed. Default: the agent's own.
	// +optional
	ModelRef *Reference `json:"modelRef,omitempty"`
	// Models name the Models of agents that the agent starts. Default: their own.
	// +listType=map
	// +listMapKey=agent
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Models []TestModel `json:"models,omitempty"`
	// Record is the cassette of the test, relative to the manifest. The run is replayed
	// from it, and the first difference fails the test; agentctl test --update asks the
	// model, runs the tools, and records the run again. Default: tools are run, and the
	// model is asked.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Record string `json:"record,omitempty"`
	// Workspace is what the run finds in its folder. Default: nothing.
	// +optional
	Workspace *TestWorkspace `json:"workspace,omitempty"`
	// PolicyRefs name policies that narrow what the agent's own allow, as those of a Run.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PolicyRefs []Reference `json:"policyRefs,omitempty"`
	// Approvals answer the questions of the run; the first entry that selects a question
	// counts. One that none selects is not answered: spec.approvals.onAsk of the agent
	// counts, and Wait has expired at once.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Approvals []TestApproval `json:"approvals,omitempty"`
	// Timeout bounds the time of each case.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Expect lists CEL expressions that have to be true when the run has ended, over
	// result, calls, decisions, files, events, children, prompt and inputs. An entry is
	// the expression, or a mapping with a name and a message beside it. Unless one
	// reads result.phase, result.reason or result.exitCode, the run has to succeed, too.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Expect []Expectation `json:"expect,omitempty"`
	// Cases are runs that differ from each other in what each entry gives. Default: one.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Cases []TestCase `json:"cases,omitempty"`
}

// TestCase is one run of a Test. What it leaves out is that of the Test.
type TestCase struct {
	// Name of the case, by which agentctl test TEST/CASE selects it. Required.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/[:cntrl:]]+$`
	Name string `json:"name"`
	// Prompt replaces that of the Test.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Prompt string `json:"prompt,omitempty"`
	// Inputs replace single inputs of the Test.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Inputs *JSON `json:"inputs,omitempty"`
	// ModelRef replaces that of the Test.
	// +optional
	ModelRef *Reference `json:"modelRef,omitempty"`
	// Record is the cassette of the case. A cassette holds one run, so no two cases share
	// one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Record string `json:"record,omitempty"`
	// Workspace replaces that of the Test.
	// +optional
	Workspace *TestWorkspace `json:"workspace,omitempty"`
	// Approvals replace those of the Test.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Approvals []TestApproval `json:"approvals,omitempty"`
	// Expect replaces that of the Test.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Expect []Expectation `json:"expect,omitempty"`
}

// TestModel is the Model of an agent that the tested one starts.
type TestModel struct {
	// Agent by its name. Required.
	// +kubebuilder:validation:MinLength=1
	Agent string `json:"agent"`
	// ModelRef names the Model. Required.
	ModelRef Reference `json:"modelRef"`
}

// TestWorkspace is what a tested run finds in its folder. It works on a copy.
type TestWorkspace struct {
	// Source is a folder that is copied.
	// +optional
	Source *TestFolder `json:"source,omitempty"`
	// Files are texts by their path in the folder, besides those of source, or in place
	// of them. Example: {README.md: "# Title\n"}.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Files map[string]string `json:"files,omitempty"`
	// Commit is the message of a commit: the folder is then a git repository with this one
	// commit, which holds all files but those that a .gitignore names. Its author and its
	// time are the same each time.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Commit string `json:"commit,omitempty"`
}

// TestFolder is a folder of files for a test.
type TestFolder struct {
	// Path of the folder, relative to the manifest. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
}

// TestAnswer is the answer to a question.
// +kubebuilder:validation:Enum=Approve;Reject
type TestAnswer string

// The answers.
const (
	TestApprove TestAnswer = "Approve"
	TestReject  TestAnswer = "Reject"
)

// TestApproval answers the questions that it selects: whether a call may run, or what a
// running call asks, as the tool question does.
type TestApproval struct {
	// Tool by its call name. Default: any; but a call that cannot be undone (risk R3) is
	// approved only by an entry that names its tool.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	// +optional
	Tool string `json:"tool,omitempty"`
	// Rule that asks, as POLICY/RULE. Default: any.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Rule string `json:"rule,omitempty"`
	// When is a CEL condition over agent, tool, args, rule and message, which is the text
	// of the question. Default: true. Example: "args.command.startsWith('git push')".
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
	// Answer is Approve or Reject. Required.
	Answer TestAnswer `json:"answer"`
	// Reason of a rejection, which the model reads.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
	// Text is the answer to what a running call asks: one of its options, or any text
	// where it has none.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Text string `json:"text,omitempty"`
}

// Expectation is a CEL expression that has to be true. In a manifest it is the expression
// alone, or a mapping.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:pruning:PreserveUnknownFields
type Expectation struct {
	// Name by which reports call it. Default: the expression.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// Expression in CEL. Required. Example: "result.output.contains('done')".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression"`
	// Message says what is wrong where it is false.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// UnmarshalJSON reads an expression, or a mapping.
func (e *Expectation) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		*e = Expectation{}
		return json.Unmarshal(b, &e.Expression)
	}
	type mapping Expectation // without this method
	return json.Unmarshal(b, (*mapping)(e))
}

// TestStatus reports whether a test can be carried out.
type TestStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TestList is a list of tests.
// +kubebuilder:object:root=true
type TestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Test `json:"items"`
}
