// Package v1alpha1 holds the kinds: what a user declares, and the Approval that a run asks for.
//
// The comments and markers of these types are the one source of the CRDs, the
// defaults, the editor schemas and the text of "agentctl explain"; they are
// written for users. Field names are a contract: fields are added, never renamed.
//
// +kubebuilder:object:generate=true
// +groupName=agentctl.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind.
const GroupName = "agentctl.dev"

// GroupVersion is the group and version that manifests name in apiVersion.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Kind names, as written in a manifest.
const (
	KindAgent     = "Agent"
	KindModel     = "Model"
	KindTool      = "Tool"
	KindPolicy    = "Policy"
	KindSkill     = "Skill"
	KindWorkspace = "Workspace"
	KindRun       = "Run"
	KindApproval  = "Approval"
	KindTest      = "Test"
)

// Kinds lists every kind of this version in the order a reader meets them.
func Kinds() []string {
	return []string{KindAgent, KindModel, KindTool, KindPolicy, KindSkill, KindWorkspace, KindRun, KindApproval, KindTest}
}

// AddToScheme registers the kinds with a runtime.Scheme, as a controller or a
// typed client needs it.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Agent{}, &AgentList{},
		&Model{}, &ModelList{},
		&Tool{}, &ToolList{},
		&Policy{}, &PolicyList{},
		&Skill{}, &SkillList{},
		&Workspace{}, &WorkspaceList{},
		&Run{}, &RunList{},
		&Approval{}, &ApprovalList{},
		&Test{}, &TestList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
