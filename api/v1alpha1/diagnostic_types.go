package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DiagnosticFormat is how the output of a checking command is read.
// +kubebuilder:validation:Enum=Lines;Text
type DiagnosticFormat string

// The formats of a checking command.
const (
	// FormatLines reads lines such as file:line:col: message.
	FormatLines DiagnosticFormat = "Lines"
	// FormatText takes the output of a command that fails as it is.
	FormatText DiagnosticFormat = "Text"
)

// Diagnostic checks files after a call of the agent has changed them: by a
// command, or by a language server. What it finds is added to the result of that
// call. It runs in a sandbox without network in which the workspace is read-only.
//
// +kubebuilder:validation:XValidation:rule="has(self.command) != has(self.server)",message="exactly one of command and server is required"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || !has(self.format)",message="format is of a command: a server answers in its own"
// +kubebuilder:validation:XValidation:rule="!has(self.language) || has(self.server)",message="language is of a server"
type Diagnostic struct {
	// Name is what the results call it. Required.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Files are globs over paths in the workspace, ** for any folders: a change of
	// one of them starts the check. Required. Example: ["**/*.go"].
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	Files []string `json:"files"`
	// Command is a program with its arguments, run in the root of the workspace
	// without a shell. The word {files} becomes the changed files, {folders} the
	// folders that they are in, each as ./path. A path with a slash is relative to
	// the manifest. Example: ["go", "vet", "{folders}"].
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// Server is a language server that speaks LSP on its standard input and output.
	// It is started at the first change and kept until the run ends. Example:
	// ["gopls"].
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Server []string `json:"server,omitempty"`
	// Language is the language of the files as the protocol names it. Default: the
	// ending of the file. Example: typescript.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Language string `json:"language,omitempty"`
	// Format of what a command writes: Lines are lines such as
	// file:line:col: message, as compilers write them, Text is the output of a
	// command that fails, as it is. Default: Lines.
	// +optional
	Format DiagnosticFormat `json:"format,omitempty"`
	// Timeout is how long one check may take, 2m at most: the call waits for it.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// MaxFindings is how many findings of one check the model is shown, those in
	// the changed files first; the others are counted.
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	// +optional
	MaxFindings int32 `json:"maxFindings,omitempty"`
}
