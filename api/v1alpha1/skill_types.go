package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Skill is a set of instructions that an agent may load: a folder with a SKILL.md,
// a plan, or both.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=agentctl
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Skill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SkillSpec   `json:"spec"`
	Status SkillStatus `json:"status,omitempty"`
}

// SkillMode is how a skill is used.
// +kubebuilder:validation:Enum=Direct;Sandbox
type SkillMode string

// The modes of a skill.
const (
	// SkillDirect gives its text to the model and runs nothing.
	SkillDirect SkillMode = "Direct"
	// SkillSandbox runs its script as a contained tool.
	SkillSandbox SkillMode = "Sandbox"
)

// SkillSpec declares the folder of a skill and how it is used.
//
// +kubebuilder:validation:XValidation:rule="has(self.dir) || has(self.plan)",message="a skill has a dir, a plan, or both",fieldPath=".dir",reason="FieldValueRequired"
type SkillSpec struct {
	// CallName is what models, rules and audit call it. Default: metadata.name.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	// +optional
	CallName string `json:"callName,omitempty"`
	// Description of when to use it, for the model. Default: that of SKILL.md.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// Dir is the folder with the SKILL.md, relative to the manifest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Dir string `json:"dir,omitempty"`
	// Mode: Direct gives the text to the model; Sandbox makes scripts/execute.* of the
	// folder a tool of the skill's name besides, which runs in a sandbox without network
	// and sees the workspace read-only. Its arguments are described by
	// scripts/execute.schema.json. Default: Sandbox for a folder with such a script,
	// Direct for any other.
	// +optional
	Mode SkillMode `json:"mode,omitempty"`
	// Plan is what the skill does, step by step. Not yet: this version refuses it.
	// +optional
	Plan *SkillPlan `json:"plan,omitempty"`
}

// SkillPlan is an ordered list of tool calls.
type SkillPlan struct {
	// Steps in order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Steps []SkillStep `json:"steps"`
}

// SkillStep is one call of a plan.
type SkillStep struct {
	// Name by which later steps refer to its result. Default: its tool.
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9_]{0,62}$`
	// +optional
	Name string `json:"name,omitempty"`
	// Tool by its call name. Required.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tool string `json:"tool"`
	// Args of the call.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Args *JSON `json:"args,omitempty"`
	// When is a CEL expression: the step is skipped where it is false.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
}

// SkillStatus reports whether a skill can be used.
type SkillStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Digest of its SKILL.md: sha256:...
	// +optional
	Digest string `json:"digest,omitempty"`
}

// SkillList is a list of skills.
// +kubebuilder:object:root=true
type SkillList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Skill `json:"items"`
}
