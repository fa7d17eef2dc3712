package v1alpha1

// CodingSource says which coding agents of others may be run, and how.
type CodingSource struct {
	// Programs that calls may name, by agent. Default: opencode, codex and claude, each as it
	// is found in PATH; opencode only for opencode_run.
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Programs []CodingProgram `json:"programs,omitempty"`
	// Modes that calls may ask for. Default: diff and report.
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Modes []CodingMode `json:"modes,omitempty"`
}

// CodingProgram is the program of a coding agent.
type CodingProgram struct {
	// Agent that it is. Required.
	Agent CodingAgent `json:"agent"`
	// Command is the program; one with a slash is relative to the manifest. Default: the name
	// of the agent, as it is found in PATH.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +optional
	Command []string `json:"command,omitempty"`
	// Version that the program must be, as in "1.18.33". Default: the one that this version
	// of agentctl was tested with.
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Version string `json:"version,omitempty"`
	// ModelRef names the Model that the program asks. Default: the first of the agent's own
	// models whose API the program speaks.
	// +optional
	ModelRef *Reference `json:"modelRef,omitempty"`
}

// CodingAgent is a coding agent that agentctl can run.
// +kubebuilder:validation:Enum=opencode;codex;claude
type CodingAgent string

// CodingMode is what a coding agent does to files: diff proposes changes, which it makes in
// a copy; inplace makes them in the files of the run, all or none, when it has succeeded;
// report changes nothing.
// +kubebuilder:validation:Enum=diff;inplace;report
type CodingMode string

// The modes.
const (
	CodingDiff    CodingMode = "diff"
	CodingInPlace CodingMode = "inplace"
	CodingReport  CodingMode = "report"
)
