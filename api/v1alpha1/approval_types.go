package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Approval is a call of a run that waits for a person. The control plane makes
// it and writes its status; people decide by "agentctl approve" and "agentctl
// deny", or by a POST to its decision.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=appr,categories=agentctl
// +kubebuilder:selectablefield:JSONPath=`.spec.runRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.decision`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.spec.risk`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.status.decision`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.status.by`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.spec.summary`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.decision) || (has(self.status) && has(self.status.decision) && self.status.decision == oldSelf.status.decision && has(self.status.scope) == has(oldSelf.status.scope) && (!has(self.status.scope) || self.status.scope == oldSelf.status.scope) && has(self.status.by) == has(oldSelf.status.by) && (!has(self.status.by) || self.status.by == oldSelf.status.by) && has(self.status.answer) == has(oldSelf.status.answer) && (!has(self.status.answer) || self.status.answer == oldSelf.status.answer) && (has(self.status.endRun) && self.status.endRun) == (has(oldSelf.status.endRun) && oldSelf.status.endRun))",message="a decision does not change",reason="FieldValueForbidden"
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ApprovalSpec   `json:"spec"`
	Status ApprovalStatus `json:"status,omitempty"`
}

// ApprovalSpec is the question. It never changes: another call is another
// question.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a question does not change",reason="FieldValueForbidden"
type ApprovalSpec struct {
	// RunRef names the run that asks. Required.
	RunRef Reference `json:"runRef"`
	// Call is the id of the call within its run; of a run that a subagent is, its run and
	// the call: RUN/CALL. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Call string `json:"call"`
	// Agent of the run.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Agent string `json:"agent,omitempty"`
	// Tool is the name by which the model called it. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Tool string `json:"tool"`
	// Summary is the call in one line, for a list.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Summary string `json:"summary,omitempty"`
	// Args are the whole arguments of the call. Absent where they are larger than an
	// object can hold: a call that cannot be shown is not approved here.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Args *JSON `json:"args,omitempty"`
	// Facts are what the call would do, as far as it is known: commands, paths, hosts.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Facts *JSON `json:"facts,omitempty"`
	// Question that the call asks while it runs. Absent for a call that waits for an
	// approval. The answer goes to the tool and allows nothing.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Question string `json:"question,omitempty"`
	// Options are the possible answers to the question; without options any text is an
	// answer.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=200
	// +listType=atomic
	// +optional
	Options []string `json:"options,omitempty"`
	// Multiple allows several of the options. Default: false, one of them.
	// +optional
	Multiple bool `json:"multiple,omitempty"`
	// Risk of the call.
	// +optional
	Risk Risk `json:"risk,omitempty"`
	// Rule that asks: POLICY/RULE.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Rule string `json:"rule,omitempty"`
	// Message is why the rule asks.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
	// Unknown reports that the call was interrupted and may have run already.
	// +optional
	Unknown bool `json:"unknown,omitempty"`
	// Always is what an approval with the scope Always would allow from now on.
	// Absent: the call can only be approved once.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Always *JSON `json:"always,omitempty"`
	// Once is why the call can only be approved once.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Once string `json:"once,omitempty"`
	// CallHash is that of the tool and the arguments: sha256:... Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	CallHash string `json:"callHash"`
	// Binding binds a decision to exactly this question: the run with its plan, the
	// call, the rule that asks and what the call was found to do: sha256:...
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Binding string `json:"binding,omitempty"`
	// ExpiresAt is when the call is refused without a decision.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// ApprovalDecision is what was decided.
// +kubebuilder:validation:Enum=approved;rejected;expired;unanswered
type ApprovalDecision string

// The decisions.
const (
	// DecisionApproved lets the call run.
	DecisionApproved ApprovalDecision = "approved"
	// DecisionRejected refuses it; the run continues unless status.endRun is true.
	DecisionRejected ApprovalDecision = "rejected"
	// DecisionExpired: there was no decision in time.
	DecisionExpired ApprovalDecision = "expired"
	// DecisionUnanswered: the run ended before a decision.
	DecisionUnanswered ApprovalDecision = "unanswered"
)

// ApprovalScope is which calls an approval covers.
// +kubebuilder:validation:Enum=Once;Always
type ApprovalScope string

// The scopes.
const (
	// ScopeOnce approves this call.
	ScopeOnce ApprovalScope = "Once"
	// ScopeAlways approves calls of this kind for the rest of the run.
	ScopeAlways ApprovalScope = "Always"
)

// The rule that a decision does not change is a marker of Approval: a rule of the
// status is not evaluated when the whole status is removed.

// ApprovalStatus is the answer. Only the control plane writes it, and only once.
type ApprovalStatus struct {
	// Decision; absent while the call waits.
	// +optional
	Decision ApprovalDecision `json:"decision,omitempty"`
	// Scope of an approval.
	// +optional
	Scope ApprovalScope `json:"scope,omitempty"`
	// By is the identity that decided.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	By string `json:"by,omitempty"`
	// Reason that was given.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Reason string `json:"reason,omitempty"`
	// Answer to the question of the call: a text, or one of the options, or several of
	// them, one on each line.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Answer string `json:"answer,omitempty"`
	// EndRun reports that the run ends with the rejection. Default: false, the run
	// continues without the call.
	// +optional
	EndRun bool `json:"endRun,omitempty"`
	// DecidedAt is the time of the decision.
	// +optional
	DecidedAt *metav1.Time `json:"decidedAt,omitempty"`
	// TakenAt is when the run took the decision; its journal records it.
	// +optional
	TakenAt *metav1.Time `json:"takenAt,omitempty"`
	// Message is why the run did not take the decision.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}

// ApprovalList is a list of approvals.
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
