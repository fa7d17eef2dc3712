package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Model declares a provider, the name of the model there, the place of the key,
// and what a token costs. The scripted provider answers from the manifest itself
// and needs no key.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=agentctl
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.model`
// +kubebuilder:printcolumn:name="Context",type=integer,JSONPath=`.spec.contextWindow`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type Model struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ModelSpec   `json:"spec"`
	Status ModelStatus `json:"status,omitempty"`
}

// Provider is the maker of the endpoint. It is the one enum in lower case,
// because these are the vendors' own names.
// +kubebuilder:validation:Enum=openai;anthropic;gemini;scripted;cassette
type Provider string

// The providers.
const (
	ProviderOpenAI    Provider = "openai"
	ProviderAnthropic Provider = "anthropic"
	ProviderGemini    Provider = "gemini"
	ProviderScripted  Provider = "scripted"
	ProviderCassette  Provider = "cassette"
)

// ModelAPI is a wire format of the openai provider.
// +kubebuilder:validation:Enum=chat;responses
type ModelAPI string

// The wire formats of the openai provider.
const (
	APIChat      ModelAPI = "chat"
	APIResponses ModelAPI = "responses"
)

// ModelSpec is how to send requests to a model.
//
// +kubebuilder:validation:XValidation:rule="self.provider in ['scripted', 'cassette'] || (has(self.model) && size(self.model) > 0)",message="model is required: it is never guessed",fieldPath=".model",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="self.provider != 'scripted' || has(self.scripted)",message="provider scripted needs scripted.steps",fieldPath=".scripted",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="self.provider != 'cassette' || has(self.cassette)",message="provider cassette needs cassette.path",fieldPath=".cassette",reason="FieldValueRequired"
type ModelSpec struct {
	// Provider is the maker of the endpoint. Required.
	Provider Provider `json:"provider"`
	// API is the wire format of the openai provider: chat completions, or the
	// responses API. No other provider has a choice.
	// +kubebuilder:default=chat
	// +optional
	API ModelAPI `json:"api,omitempty"`
	// Model is the name the provider knows, for example gpt-5-mini. Required,
	// except for scripted and cassette.
	// +optional
	Model string `json:"model,omitempty"`
	// BaseURL is the endpoint as the provider's SDK takes it: openai with /v1,
	// anthropic and gemini without a version. Default: the provider's own.
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// APIKey names the place of the key. Optional for an endpoint without authentication.
	// +optional
	APIKey *ValueSource `json:"apiKey,omitempty"`
	// Parameters of the request, for example temperature, maxOutputTokens,
	// reasoningEffort; docs/models.md lists those of each provider. A name
	// that the provider does not accept is an error; other fields of the request
	// go into extra.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Parameters *JSON `json:"parameters,omitempty"`
	// ContextWindow is the number of tokens the model can hold. Optional for models
	// that "agentctl models" lists.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ContextWindow int64 `json:"contextWindow,omitempty"`
	// Media that the model can be shown where a tool returns some, for example
	// [images, pdf]; [] is none. Default: what "agentctl models" lists for the model; at
	// the provider's own address all for a model that is not listed; at another
	// address none. Files that a person attaches are sent in any case.
	// +kubebuilder:validation:items:Enum=images;pdf
	// +listType=set
	// +optional
	Media []string `json:"media,omitzero"`
	// Pricing in US dollars per million tokens. Optional; well-known models have
	// their list price at the provider's own address. Otherwise the cost is
	// unknown without it, and limits.maxCost ends the run at once.
	// +optional
	Pricing *Pricing `json:"pricing,omitempty"`
	// Retry defines how often a failed request is sent again.
	// +kubebuilder:default={}
	// +optional
	Retry Retry `json:"retry,omitempty"`
	// Fallbacks are models to use when this model stays unavailable, in order;
	// after each come its own fallbacks. A model that was unavailable gets no
	// request for a minute, or for as long as its server says.
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Fallbacks []Reference `json:"fallbacks,omitempty"`
	// Scripted holds the answers of the scripted provider.
	// +optional
	Scripted *Script `json:"scripted,omitempty"`
	// Cassette names a recording for the cassette provider.
	// +optional
	Cassette *Cassette `json:"cassette,omitempty"`
}

// Pricing is what a million tokens cost.
type Pricing struct {
	// Input tokens that were not read from the provider's cache.
	// +optional
	Input Money `json:"input,omitempty"`
	// CacheRead tokens.
	// +optional
	CacheRead Money `json:"cacheRead,omitempty"`
	// CacheWrite tokens.
	// +optional
	CacheWrite Money `json:"cacheWrite,omitempty"`
	// Output tokens, reasoning included.
	// +optional
	Output Money `json:"output,omitempty"`
}

// Retry bounds repeated requests after temporary errors: refused or broken
// connections, 408, 429, 5xx and overload.
type Retry struct {
	// Attempts is the total number of requests, the first included.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// MaxDelay is the longest wait between two requests. A longer Retry-After
	// is not waited for: a fallback is used, or the run ends with reason
	// ProviderUnavailable.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	MaxDelay metav1.Duration `json:"maxDelay,omitempty"`
	// StallTimeout is how long an answer may make no progress; the request then
	// counts as failed and is sent again. Comments, pings and other bytes that only
	// keep the connection open are not progress. Optional. Default: five minutes up
	// to the first byte, a minute without any byte, two minutes with keep-alives
	// only, ten minutes of keep-alives after the server has announced a thought, a
	// tool of its own or a call. A value replaces all four: raise it for a model
	// that thinks longer without output. Example: 20m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	StallTimeout *metav1.Duration `json:"stallTimeout,omitempty"`
}

// Script is the scripted provider's list of answers.
type Script struct {
	// Steps are tried in order: the first unused step whose when is true is the
	// answer, and is used once. Without such a step the answer is empty.
	// +kubebuilder:validation:MaxItems=1000
	Steps []ScriptStep `json:"steps"`
}

// ScriptStep is one answer of the scripted provider. In say, reasoning and the
// string values of args, ${expr} is replaced by the value of a CEL expression;
// $${ is a literal ${.
type ScriptStep struct {
	// When is a CEL condition over turn, prompt, inputs and last. Default: true.
	// Example: last.exitCode != 0.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`
	// Reasoning is emitted before the text.
	// +optional
	Reasoning string `json:"reasoning,omitempty"`
	// Say is the text of the answer.
	// +optional
	Say string `json:"say,omitempty"`
	// Calls are the tool calls of the answer.
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Calls []ScriptCall `json:"calls,omitempty"`
}

// ScriptCall is a tool call of a scripted answer.
type ScriptCall struct {
	// Tool is the name to call; a tool of that name may be missing. Required.
	Tool string `json:"tool"`
	// Args of the call, as a JSON object. Default: {}.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Args *JSON `json:"args,omitempty"`
}

// Cassette is a recorded run.
type Cassette struct {
	// Path of the recording, relative to the manifest. Required.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
}

// ModelStatus reports whether a model can be used.
type ModelStatus struct {
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions hold Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelList is a list of models.
// +kubebuilder:object:root=true
type ModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Model `json:"items"`
}
