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
// +kubebuilder:validation:XValidation:rule="has(self.dir) || has(self.image) || has(self.plan)",message="a skill has a dir or an image, a plan, or both",fieldPath=".dir",reason="FieldValueRequired"
type SkillSpec struct {
	// CallName is what models, rules and audit call it. Default: metadata.name.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	// +optional
	CallName string `json:"callName,omitempty"`
	// Description of when to use it, for the model. Default: that of SKILL.md.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// Image is the OCI artifact or image that holds the folder, with its digest:
	// registry/name@sha256:..., or oci:PATH@sha256:... for a folder or tar file in OCI
	// layout, relative to the manifest. A tag alone is refused. It is fetched once and
	// kept in the state folder. Optional.
	// +kubebuilder:validation:Pattern=`^[^@\s]+@sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Image string `json:"image,omitempty"`
	// Dir is the folder with the SKILL.md, relative to the manifest; with an image,
	// relative to its root. Default with an image: its root, or the only folder in it.
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
	// Plan is what the skill does, step by step: agentctl run --skill carries it out
	// without a model, and a model that loads the skill reads it. Optional.
	// +optional
	Plan *SkillPlan `json:"plan,omitempty"`
}

// SkillPlan is an ordered list of tool calls. In its texts, ${expression} stands for the
// value of a CEL expression over inputs and the results of earlier steps.
type SkillPlan struct {
	// Inputs describe the data that the plan reads as inputs.name, in place of the
	// inputs of the agent: a value of the wrong type or a missing one is refused before
	// the first step. Default: the inputs of the agent.
	// +optional
	Inputs *InputContract `json:"inputs,omitempty"`
	// Steps in order. Each reads only the results of steps before it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Steps []SkillStep `json:"steps"`
	// Output is the answer of the run, for example "Released ${inputs.version}." or
	// "${{'tag': steps.tag.output}}". Default: the output of the last step that ran.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Output string `json:"output,omitempty"`
}

// StepErrorPolicy is what becomes of a plan when a step fails.
// +kubebuilder:validation:Enum=Stop;Continue
type StepErrorPolicy string

// What becomes of a plan when a step fails.
const (
	// StepStop ends the run.
	StepStop StepErrorPolicy = "Stop"
	// StepContinue goes on with the next step, which may read the error.
	StepContinue StepErrorPolicy = "Continue"
)

// SkillStep is one call of a plan, or one for each item of a list.
type SkillStep struct {
	// Name by which later steps read its result: steps.NAME.output, .error, .exitCode,
	// .ran, and .data where the output is JSON. The error is "" for a call that succeeded,
	// "exit" for a program with another exit code than 0. Default: its tool, if no other
	// step is called like it.
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9_]{0,62}$`
	// +optional
	Name string `json:"name,omitempty"`
	// Tool by its call name. Required.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tool string `json:"tool"`
	// Args of the call. Strings in them may hold ${expressions}; a string that is one
	// expression and nothing else becomes its value, a number or a list for example.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Args *JSON `json:"args,omitempty"`
	// When is a CEL expression: the step is skipped where it is false. It is evaluated
	// once, before forEach. Optional.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
	// ForEach is a CEL expression for a list of at most 128 items: the call is made once
	// for each, which args read as item and index. Later steps read
	// steps.NAME.items[0].output. Optional; example: "inputs.files".
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ForEach string `json:"forEach,omitempty"`
	// Approval asks a person before each call of the step, whatever rules allow and
	// whatever was approved before. What a rule denies stays denied.
	// +optional
	Approval bool `json:"approval,omitempty"`
	// OnError is what happens when a call of the step fails or is refused: Stop ends the
	// run, Continue goes on with the next step. Default: Stop.
	// +optional
	OnError StepErrorPolicy `json:"onError,omitempty"`
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
