package v1alpha1

// MCPSource is an MCP server: exactly one of stdio, http and container.
// +kubebuilder:validation:XValidation:rule="[has(self.stdio), has(self.http), has(self.container)].filter(given, given).size() == 1",message="needs exactly one of stdio, http, container"
type MCPSource struct {
	// Stdio starts the server as a child process.
	// +optional
	Stdio *MCPStdio `json:"stdio,omitempty"`
	// HTTP connects to the server over streamable HTTP.
	// +optional
	HTTP *MCPHTTP `json:"http,omitempty"`
	// Container starts the server of an image, which speaks on standard input and output.
	// +optional
	Container *MCPContainer `json:"container,omitempty"`
	// TrustAnnotations makes the contract of a tool of what the server says about it:
	// readOnlyHint gives it risk R0, destructiveHint R3. Default false: annotations are
	// shown to people, and decide nothing.
	// +optional
	TrustAnnotations bool `json:"trustAnnotations,omitempty"`
}

// MCPStdio is an MCP server on standard input and output.
type MCPStdio struct {
	// Command and its arguments; a first element with a slash is relative to the
	// manifest. The server works in the folder of the run's files. Required.
	// +kubebuilder:validation:MinItems=1
	Command []string `json:"command"`
}

// MCPContainer is an MCP server in an OCI image, on standard input and output.
type MCPContainer struct {
	// Image with its digest: registry/name@sha256:..., or oci:PATH@sha256:... for a
	// folder or tar file in OCI layout, relative to the manifest. A tag alone is
	// refused. Required.
	// +kubebuilder:validation:Pattern=`^[^@\s]+@sha256:[0-9a-f]{64}$`
	Image string `json:"image"`
	// Command and its arguments. The server works in the folder of the run's files.
	// Default: the image's own.
	// +optional
	Command []string `json:"command,omitempty"`
	// RuntimeClass selects another containerd runtime. Default: runc.
	// +optional
	RuntimeClass string `json:"runtimeClass,omitempty"`
}

// MCPHTTP is an MCP server over streamable HTTP.
type MCPHTTP struct {
	// URL of the server. Requests go to its host only, and redirects to another one are
	// refused. Required.
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	URL string `json:"url"`
	// Headers sent with each request.
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []Header `json:"headers,omitempty"`
	// Auth obtains an access token, which is sent as the header Authorization. The URL
	// is then https, or one of this host. Default: no token.
	// +optional
	Auth *MCPAuth `json:"auth,omitempty"`
}

// MCPAuth is how the access token for an MCP server is obtained: exactly one of
// clientCredentials and authorizationCode.
// +kubebuilder:validation:XValidation:rule="has(self.clientCredentials) != has(self.authorizationCode)",message="needs exactly one of clientCredentials, authorizationCode"
type MCPAuth struct {
	// ClientCredentials obtains it by the OAuth grant for programs, without a person.
	// +optional
	ClientCredentials *ClientCredentials `json:"clientCredentials,omitempty"`
	// AuthorizationCode uses the login of a person, which "agentctl auth login" has made
	// before the run. A run never waits for a person to log in. An empty object is enough
	// where the authorization server registers clients by itself.
	// +optional
	AuthorizationCode *AuthorizationCode `json:"authorizationCode,omitempty"`
}

// AuthorizationCode is the login of a person at the authorization server of an MCP server
// (OAuth authorization code with PKCE).
// +kubebuilder:validation:XValidation:rule="!has(self.clientSecret) || has(self.clientID)",message="clientSecret needs clientID"
type AuthorizationCode struct {
	// ClientID of a client that is registered at the authorization server with the
	// redirect http://127.0.0.1/callback, or the https URL of a client id metadata
	// document. Default: a client is registered at the login.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// ClientSecret is the place of the secret of that client, if it has one. Default: none.
	// +optional
	ClientSecret *ValueSource `json:"clientSecret,omitempty"`
	// Scopes to ask for, for example [files.read, offline_access]. Default: those that the
	// server asks for, or else those that its metadata lists, and offline_access where the
	// authorization server has it.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// Issuer is the authorization server to log in at, as the MCP server's metadata names
	// it, for example https://login.example.com. Default: the one that the server names; with
	// clientSecret only one at the host of the URL.
	// +kubebuilder:validation:Pattern=`^https?://[^\s?#]+$`
	// +optional
	Issuer string `json:"issuer,omitempty"`
}

// ClientCredentials are an OAuth client of its own right, which was registered at the
// authorization server of an MCP server. The secret is sent to that server only.
// +kubebuilder:validation:XValidation:rule="!has(self.issuer) || !has(self.tokenURL)",message="needs at most one of issuer, tokenURL"
type ClientCredentials struct {
	// ClientID of the registered client. Required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ClientID string `json:"clientID"`
	// ClientSecret is the place of its secret. Required.
	ClientSecret ValueSource `json:"clientSecret"`
	// Scopes to ask for, for example [files.read]. Default: those that the server asks
	// for when it refuses a request, or else those that its metadata lists.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// Issuer is the authorization server that the client is registered at, as the MCP
	// server's metadata names it, for example https://login.example.com. Default: one at
	// the host of the URL; the secret is not sent to another one that is found.
	// +kubebuilder:validation:Pattern=`^https?://[^\s?#]+$`
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// TokenURL is the token endpoint. No metadata is asked for then. Default: found by
	// the metadata of the MCP server and of its authorization server.
	// +kubebuilder:validation:Pattern=`^https?://[^\s#]+$`
	// +optional
	TokenURL string `json:"tokenURL,omitempty"`
}

// Header is an HTTP header whose value is a reference.
type Header struct {
	// Name of the header. Required.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// ValueFrom is the source of the value. Required: a literal value is refused.
	ValueFrom ValueFrom `json:"valueFrom"`
}
