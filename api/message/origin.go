package message

// Origin is where a text comes from that a run works with. The runner sets it from what
// it knows itself: no model and no program can write it, or choose another.
type Origin struct {
	Kind OriginKind `json:"kind"`
	// Name of the user or the agent, call name of the tool, or path of the file; absent
	// where it is not known.
	Name string `json:"name,omitempty"`
	// Server is the host of the server that answered a call.
	Server string `json:"server,omitempty"`
}

// OriginKind is what a text comes from.
type OriginKind string

// The origins.
const (
	// OriginRunner is agentctl itself.
	OriginRunner OriginKind = "runner"
	// OriginAuthor is who wrote the manifests.
	OriginAuthor OriginKind = "author"
	// OriginUser is who began the run, or sent it a message.
	OriginUser OriginKind = "user"
	// OriginAgent is the model of another agent, which has started the run.
	OriginAgent OriginKind = "agent"
	// OriginFile is the content of a file.
	OriginFile OriginKind = "file"
	// OriginTool is what a call brought.
	OriginTool OriginKind = "tool"
	// OriginServer is what a call brought that a server elsewhere has answered.
	OriginServer OriginKind = "server"
)
