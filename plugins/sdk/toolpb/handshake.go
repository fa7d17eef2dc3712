package toolpb

// The handshake. The cookie is no secret: it only keeps a person from starting
// a plugin program by hand and wondering.
const (
	// CookieKey is the environment variable that holds the cookie.
	CookieKey = "AGENTCTL_PLUGIN"
	// CookieValue is what it holds.
	CookieValue = "tool-6c1f0a52"
	// Version of the protocol in this package.
	Version = 1
	// ProbesKey is the environment variable by which a program is asked to serve
	// the probe tools besides its own: "1". No manifest can set it, because its
	// name is one of the handshake's.
	ProbesKey = "PLUGIN_PROBES"
	// PluginName is the name under which the service is registered.
	PluginName = "tool"
)

// Bounds of the wire, the same on both ends.
const (
	// MaxMessage is the largest message either end accepts. gRPC's own default
	// of 4 MiB is less than a large file in an argument.
	MaxMessage = 64 << 20
	// Window is how much may be on its way before the reader has taken it.
	Window = 1 << 20
	// MaxChunk is the most an output event carries.
	MaxChunk = 32 << 10
	// MaxProgress is the most a progress event carries.
	MaxProgress = 4 << 10
	// MaxProgressMetadata is the most that the metadata of a progress event takes.
	MaxProgressMetadata = 16 << 10
	// MaxParts is how many parts a result has.
	MaxParts = 16
	// MaxPart is the most that the data of one part takes.
	MaxPart = 64 << 10
	// MaxAllParts is the most that the data of all parts takes.
	MaxAllParts = 256 << 10
	// MaxVariables is how many variables a result supplies.
	MaxVariables = 16
	// MaxMetadata is the most a result's metadata may take.
	MaxMetadata = 1 << 20
)
