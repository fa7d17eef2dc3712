package v1alpha1

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tool declares something a model may call: the source of its program, its
// arguments, its effects, and its isolation.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=agentctl
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.spec.risk`
// +kubebuilder:printcolumn:name="Isolation",type=string,JSONPath=`.spec.isolation.minimum`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Tool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ToolSpec   `json:"spec"`
	Status ToolStatus `json:"status,omitempty"`
}

// Risk is how much harm a call can do.
// +kubebuilder:validation:Enum=R0;R1;R2;R3
type Risk string

// The risk classes.
const (
	// RiskR0 reads.
	RiskR0 Risk = "R0"
	// RiskR1 writes in the workspace.
	RiskR1 Risk = "R1"
	// RiskR2 runs programs or reaches outside.
	RiskR2 Risk = "R2"
	// RiskR3 has irreversible effects.
	RiskR3 Risk = "R3"
)

// Effect is one kind of effect of a call.
// +kubebuilder:validation:Enum=Read;Write;Execute;Network;Message;Money
type Effect string

// The effects.
const (
	EffectRead    Effect = "Read"
	EffectWrite   Effect = "Write"
	EffectExecute Effect = "Execute"
	EffectNetwork Effect = "Network"
	EffectMessage Effect = "Message"
	EffectMoney   Effect = "Money"
)

// Category is a coarse kind of tool, as editors show it.
// +kubebuilder:validation:Enum=Read;Edit;Delete;Move;Search;Execute;Think;Fetch;Other
type Category string

// The categories, those of the Agent Client Protocol.
const (
	CategoryRead    Category = "Read"
	CategoryEdit    Category = "Edit"
	CategoryDelete  Category = "Delete"
	CategoryMove    Category = "Move"
	CategorySearch  Category = "Search"
	CategoryExecute Category = "Execute"
	CategoryThink   Category = "Think"
	CategoryFetch   Category = "Fetch"
	CategoryOther   Category = "Other"
)

// Concurrency defines whether calls of a tool may overlap with other calls.
// +kubebuilder:validation:Enum=Shared;Exclusive
type Concurrency string

// The concurrency classes.
const (
	ConcurrencyShared    Concurrency = "Shared"
	ConcurrencyExclusive Concurrency = "Exclusive"
)

// RetryClass defines what a resumed run may do with a call whose result was lost.
// +kubebuilder:validation:Enum=Idempotent;Keyed;Never
type RetryClass string

// The retry classes.
const (
	// RetryIdempotent calls may run again.
	RetryIdempotent RetryClass = "Idempotent"
	// RetryKeyed calls may run again with the same idempotency key.
	RetryKeyed RetryClass = "Keyed"
	// RetryNever calls must not be repeated without a person's consent.
	RetryNever RetryClass = "Never"
)

// IsolationLevel is how a tool's process is isolated, from the weakest to the
// strongest level.
// +kubebuilder:validation:Enum=None;Sandbox;Container
type IsolationLevel string

// The isolation levels.
const (
	IsolationNone      IsolationLevel = "None"
	IsolationSandbox   IsolationLevel = "Sandbox"
	IsolationContainer IsolationLevel = "Container"
)

// NetworkMode is the network of a tool's process.
// +kubebuilder:validation:Enum=None;Proxy;Host
type NetworkMode string

// The network modes.
const (
	NetworkNone  NetworkMode = "None"
	NetworkProxy NetworkMode = "Proxy"
	NetworkHost  NetworkMode = "Host"
)

// WorkspaceAccess is what a tool may do with the run's workspace.
// +kubebuilder:validation:Enum=None;ReadOnly;ReadWrite
type WorkspaceAccess string

// The kinds of workspace access.
const (
	AccessNone      WorkspaceAccess = "None"
	AccessReadOnly  WorkspaceAccess = "ReadOnly"
	AccessReadWrite WorkspaceAccess = "ReadWrite"
)

// ToolSpec is a tool's contract and its source.
type ToolSpec struct {
	// CallName is what models, rules and audit lines call the tool. Default:
	// metadata.name.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	// +optional
	CallName string `json:"callName,omitempty"`
	// Description of the tool, for the model. Default: the program's own.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`
	// Parameters are the arguments as a JSON Schema (2020-12) of type object.
	// Default: the program's own. Required for exec.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Parameters *JSON `json:"parameters,omitempty"`
	// Risk: R0 reads, R1 writes in the workspace, R2 runs programs or reaches
	// outside, R3 is irreversible. Default R2; a built-in tool has its own, which
	// a manifest can only raise.
	// +optional
	Risk Risk `json:"risk,omitempty"`
	// Effects of a call. A built-in tool has its own, to which a manifest can only add.
	// +listType=set
	// +optional
	Effects []Effect `json:"effects,omitempty"`
	// Category is a coarse kind of tool. Default Other.
	// +optional
	Category Category `json:"category,omitempty"`
	// Concurrency: Shared calls may overlap, an Exclusive call runs alone. Default Shared.
	// +optional
	Concurrency Concurrency `json:"concurrency,omitempty"`
	// Retry is what a resume may repeat. Default Never.
	// +optional
	Retry RetryClass `json:"retry,omitempty"`
	// Flow declares the labels of what the tool returns and which arguments are
	// sensitive. Not yet: this version refuses it.
	// +optional
	Flow *Flow `json:"flow,omitempty"`
	// Limits of one call.
	// +kubebuilder:default={}
	// +optional
	Limits ToolLimits `json:"limits,omitempty"`
	// Isolation of the tool's process.
	// +kubebuilder:default={}
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`
	// Network of the tool's process.
	// +kubebuilder:default={}
	// +optional
	Network Network `json:"network,omitempty"`
	// WorkspaceAccess of the tool's process. Default ReadOnly; the built-in
	// tools bash, edit and write have ReadWrite.
	// +optional
	WorkspaceAccess WorkspaceAccess `json:"workspaceAccess,omitempty"`
	// Env are the only environment variables the process gets, besides PATH,
	// HOME, LANG, TZ and TMPDIR.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`
	// Supplies are the names of variables that a result of the tool may hold for later
	// calls, such as the token of a login. Only tools that name this one in
	// env[].suppliedBy are given them. The values are secrets of the run: they are kept
	// in memory, and gone when it is resumed. For programs that speak the tool protocol.
	// Example: [API_TOKEN].
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z_][A-Za-z0-9_]{0,63}$`
	// +listType=set
	// +optional
	Supplies []string `json:"supplies,omitempty"`
	// Source is the program behind the tool: exactly one of builtin, plugin,
	// container, mcp, agent, exec. Required.
	Source ToolSource `json:"source"`
}

// Flow declares labels. Integrity and confidentiality are those of what the
// tool returns.
type Flow struct {
	// Integrity of the result. Default Untrusted.
	// +kubebuilder:validation:Enum=Trusted;Untrusted
	// +optional
	Integrity string `json:"integrity,omitempty"`
	// Confidentiality of the result. Default Internal.
	// +kubebuilder:validation:Enum=Public;Internal;Secret
	// +optional
	Confidentiality string `json:"confidentiality,omitempty"`
	// TrustedFields of the result were written by the system, not by outsiders.
	// +optional
	TrustedFields []string `json:"trustedFields,omitempty"`
	// Arguments that are sensitive, by name, and why.
	// +optional
	Arguments map[string]FlowArgument `json:"arguments,omitempty"`
}

// FlowArgument is why an argument is sensitive.
// +kubebuilder:validation:Enum=Destination;Amount;Code;Path
type FlowArgument string

// ToolLimits bound one call.
type ToolLimits struct {
	// Timeout of one call.
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// OutputBytes the model is shown; the full text is kept as a blob of the run.
	// +kubebuilder:default=51200
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	OutputBytes int64 `json:"outputBytes,omitempty"`
	// OutputLines the model is shown.
	// +kubebuilder:default=2000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	OutputLines int64 `json:"outputLines,omitempty"`
	// Memory of the process tree, as Kubernetes writes it, for example 512Mi.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// CPU cores of the process tree, as Kubernetes writes it, for example "1" or 500m.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Scratch bounds /tmp and the home folder of a sandbox, each; both are in
	// memory. As Kubernetes writes it. Default 512Mi.
	// +optional
	Scratch *resource.Quantity `json:"scratch,omitempty"`
	// Pids bounds the processes of the tree.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Pids int64 `json:"pids,omitempty"`
}

// Isolation is the minimum isolation that a tool requires.
type Isolation struct {
	// Minimum level. A host that does not support it ends the run with reason
	// IsolationUnavailable and exit code 8 before anything runs.
	// +kubebuilder:default=Sandbox
	// +optional
	Minimum IsolationLevel `json:"minimum,omitempty"`
	// Fresh starts a new sandbox or container for each call.
	// +optional
	Fresh bool `json:"fresh,omitempty"`
	// Mounts are files and folders of the host that the program sees besides
	// /usr, the run's files and the files its command names.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=path
	// +optional
	Mounts []Mount `json:"mounts,omitempty"`
	// Bind: Facts holds a call whose script was judged by what it does to just that: it
	// can change only the files, start only the programs and open connections only if the
	// policy has judged that it would. What it reads is not bound. Off leaves the call
	// to its isolation alone. Only shipped tools that run commands are bound (bash and
	// workspace_shell), at every level, where the kernel has Landlock. Default Facts;
	// may change between runs. Example: Off.
	// +kubebuilder:default=Facts
	// +optional
	Bind Bind `json:"bind,omitempty"`
}

// Bind is what a call may do of what its isolation lets it do.
// +kubebuilder:validation:Enum=Facts;Off
type Bind string

// The ways to bind a call.
const (
	BindFacts Bind = "Facts"
	BindOff   Bind = "Off"
)

// Mount is a file or folder of the host that a contained program sees under the
// same path.
type Mount struct {
	// Path of the file or folder; relative to the manifest. Required.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// Access: ReadOnly or ReadWrite.
	// +kubebuilder:default=ReadOnly
	// +optional
	Access MountAccess `json:"access,omitempty"`
}

// MountAccess is what a program may do with a mount.
// +kubebuilder:validation:Enum=ReadOnly;ReadWrite
type MountAccess string

// The accesses of a mount.
const (
	MountReadOnly  MountAccess = "ReadOnly"
	MountReadWrite MountAccess = "ReadWrite"
)

// Network is what a tool's process can connect to.
type Network struct {
	// Mode: None has no network, Proxy allows connections that allow lists, Host is
	// the network of the host.
	// +kubebuilder:default=None
	// +optional
	Mode NetworkMode `json:"mode,omitempty"`
	// Allow lists host:port patterns for mode Proxy, for example api.github.com:443.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Allow []string `json:"allow,omitempty"`
}

// ToolSource is exactly one kind of program.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ToolSource struct {
	// Builtin is a tool shipped with agentctl.
	// +optional
	Builtin *BuiltinSource `json:"builtin,omitempty"`
	// Plugin is a program that speaks the tool protocol (hashicorp/go-plugin, gRPC).
	// +optional
	Plugin *PluginSource `json:"plugin,omitempty"`
	// Container is a program in an OCI image.
	// +optional
	Container *ContainerSource `json:"container,omitempty"`
	// MCP is a Model Context Protocol server; each of its tools becomes callName_tool.
	// +optional
	MCP *MCPSource `json:"mcp,omitempty"`
	// Agent makes a call a run of another agent, whose final answer is the result.
	// The argument prompt is its first message, the others are its inputs; without
	// parameters there is only a prompt.
	// +optional
	Agent *Reference `json:"agent,omitempty"`
	// Exec is any program: arguments as JSON on standard input, the result on
	// standard output, an exit code other than 0 is an error result.
	// +optional
	Exec *ExecSource `json:"exec,omitempty"`
}

// Kind names the one source that is given, as the field that declares it; ""
// when none is.
func (s *ToolSource) Kind() string {
	switch {
	case s.Builtin != nil:
		return "builtin"
	case s.Plugin != nil:
		return "plugin"
	case s.Container != nil:
		return "container"
	case s.MCP != nil:
		return "mcp"
	case s.Agent != nil:
		return "agent"
	case s.Exec != nil:
		return "exec"
	}
	return ""
}

// Several reports whether the source always provides several functions, each of which is
// a tool of its own for models and rules.
func (s *ToolSource) Several() bool { return s.MCP != nil }

// ToolSourceKinds returns all names that Kind returns, in the order of the fields.
func ToolSourceKinds() []string {
	var all []string
	for field := range reflect.TypeFor[ToolSource]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}

// BuiltinSource is a tool shipped with agentctl.
type BuiltinSource struct {
	// Name of the built-in tool. Required.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Coding is for coding_agent and opencode_run, which run the programs of other coding
	// agents. Optional.
	// +optional
	Coding *CodingSource `json:"coding,omitempty"`
}

// PluginSource is a program that speaks the tool protocol.
type PluginSource struct {
	// Command and its arguments; a first element with a slash is relative to
	// the manifest. Required.
	// +kubebuilder:validation:MinItems=1
	Command []string `json:"command"`
	// SHA256 of the program, in hex. A program that differs is not started. Optional.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// Tool is the name of the function inside the program. Default: callName.
	// +optional
	Tool string `json:"tool,omitempty"`
}

// ContainerProtocol is how a program in a container is called.
// +kubebuilder:validation:Enum=Plugin;Exec
type ContainerProtocol string

// The container protocols.
const (
	ProtocolPlugin ContainerProtocol = "Plugin"
	ProtocolExec   ContainerProtocol = "Exec"
)

// ContainerSource is a program in an OCI image.
type ContainerSource struct {
	// Image with its digest: registry/name@sha256:..., or oci:PATH@sha256:... for a
	// folder or tar file in OCI layout, relative to the manifest. A tag alone is
	// refused. Required.
	// +kubebuilder:validation:Pattern=`^[^@\s]+@sha256:[0-9a-f]{64}$`
	Image string `json:"image"`
	// Command and its arguments. Default: the image's own.
	// +optional
	Command []string `json:"command,omitempty"`
	// Protocol: Plugin keeps one server and calls it by gRPC, Exec starts a
	// program per call.
	// +kubebuilder:default=Plugin
	// +optional
	Protocol ContainerProtocol `json:"protocol,omitempty"`
	// Tool is the name of the function inside the program. Default: callName.
	// +optional
	Tool string `json:"tool,omitempty"`
	// RuntimeClass selects another containerd runtime. Default: runc.
	// +optional
	RuntimeClass string `json:"runtimeClass,omitempty"`
}

// ExecSource is any program.
type ExecSource struct {
	// Command and its arguments; a first element with a slash is relative to
	// the manifest. Required.
	// +kubebuilder:validation:MinItems=1
	Command []string `json:"command"`
}

// ToolStatus reports whether a tool can be used.
type ToolStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Digest of the name, description and parameters that the tool's program
	// reported when this generation first became ready. When the program reports
	// something else later, the tool is not ready, with reason ToolChanged.
	// +optional
	Digest string `json:"digest,omitempty"`
}

// ToolList is a list of tools.
// +kubebuilder:object:root=true
type ToolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tool `json:"items"`
}
