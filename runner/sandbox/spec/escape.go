package spec

// EscapeArg makes agentctl-escape try to get out of the sandbox it is in: it reads
// Targets from stdin and writes one Attempt a line.
const EscapeArg = "try-to-escape"

// Targets are resources outside, for attempts that need to know them. An empty
// field skips its attempts.
type Targets struct {
	// File outside that the user may read, Socket a listening unix socket,
	// Abstract one without a path.
	File     string `json:"file,omitempty"`
	Socket   string `json:"socket,omitempty"`
	Abstract string `json:"abstract,omitempty"`
	// TCP and UDP are addresses outside at which a server listens, and answers
	// each packet, as IPv4 host:port.
	TCP string `json:"tcp,omitempty"`
	UDP string `json:"udp,omitempty"`
	// Process is a process outside, for example the runner.
	Process int `json:"process,omitempty"`
	// Workspace is a folder inside that may be written to. Fixed and Masked are
	// what may not be changed, and not be read.
	Workspace string   `json:"workspace,omitempty"`
	Fixed     []string `json:"fixed,omitempty"`
	Masked    []string `json:"masked,omitempty"`
	// Inside allows the attempts that would disturb the host if they succeeded
	// outside a sandbox.
	Inside bool `json:"inside,omitempty"`
}

// Attempt is one try.
type Attempt struct {
	// Name of the way, for example "mount a file system".
	Name string `json:"name"`
	// Open is set when the attempt worked: it reached something outside.
	Open bool `json:"open"`
	// How it was stopped.
	How string `json:"how,omitempty"`
}
