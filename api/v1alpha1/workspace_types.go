package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workspace names a folder that runs work on.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ws,categories=agentctl
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.strategy`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source.path`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Workspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NamedWorkspaceSpec `json:"spec"`
	Status WorkspaceStatus    `json:"status,omitempty"`
}

// NamedWorkspaceSpec declares the files that runs work on, and what happens to
// their changes.
type NamedWorkspaceSpec struct {
	WorkspaceSpec `json:",inline"`

	// Apply is what happens to a run's changes to a copy. Manual leaves them for
	// agentctl apply-changes. Auto applies them to the source folder when the run has
	// succeeded, all or nothing; if a file there has changed meanwhile, nothing is
	// applied and the run fails (WorkspaceUnavailable). Never: apply-changes refuses
	// them, and agentctl diff still shows them.
	// +kubebuilder:default=Manual
	// +optional
	Apply ApplyMode `json:"apply,omitempty"`
	// Retain is when the copy is kept after the end of the run: Always, OnFailure
	// (removed when the run has succeeded) or Never. What the run changed is kept
	// with its journal in any case, and a copy that holds a change which could not
	// be recorded is not removed.
	// +kubebuilder:default=OnFailure
	// +optional
	Retain RetainMode `json:"retain,omitempty"`
}

// ApplyMode is what happens to the changes of a run.
// +kubebuilder:validation:Enum=Manual;Auto;Never
type ApplyMode string

// The apply modes.
const (
	ApplyManual ApplyMode = "Manual"
	ApplyAuto   ApplyMode = "Auto"
	ApplyNever  ApplyMode = "Never"
)

// RetainMode is when the copy of a run is kept.
// +kubebuilder:validation:Enum=Always;OnFailure;Never
type RetainMode string

// The retain modes.
const (
	RetainAlways    RetainMode = "Always"
	RetainOnFailure RetainMode = "OnFailure"
	RetainNever     RetainMode = "Never"
)

// WorkspaceStatus reports whether a workspace can be used.
type WorkspaceStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WorkspaceList is a list of workspaces.
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workspace `json:"items"`
}
