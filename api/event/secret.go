package event

// SecretResolved records that the value of a secret reference was read, never the value.
// It is recorded when a process begins or continues the run.
type SecretResolved struct {
	// From is how the manifest refers to the value: env, file or exec. Name is the
	// variable, the path or the program.
	From string `json:"from"`
	Name string `json:"name"`
	// Model or Tool that is given the value, by its name in the manifests or its call name;
	// both are "" for the workspace.
	Model string `json:"model,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// Field of the manifest, for example spec.apiKey.
	Field string `json:"field"`
}
