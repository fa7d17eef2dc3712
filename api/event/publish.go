package event

// PublishState is how far the publication of an item is.
type PublishState string

// The states of a publication.
const (
	// PublishBegun is recorded, durably, before anything is sent.
	PublishBegun PublishState = "begun"
	// PublishSent is an item that the target has accepted, PublishFound one that it had
	// already: an earlier process had sent it.
	PublishSent  PublishState = "sent"
	PublishFound PublishState = "found"
	// PublishFailed is an item that may be sent again.
	PublishFailed PublishState = "failed"
)

// PublishItem records what a person does with an item that a call of the run has prepared.
// The call is in the envelope. It follows run.finished.
type PublishItem struct {
	// Name of the entry of spec.publish, and its Type.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Target is where it is sent, for people.
	Target string `json:"target"`
	// Key by which the target recognises an item that is sent twice.
	Key string `json:"key"`
	// Item is the hash of what is sent and of its target.
	Item  string       `json:"item"`
	State PublishState `json:"state"`
	// URL of what was made; "" where the target names none.
	URL string `json:"url,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// By is who publishes it, for example "jane@pts/3".
	By string `json:"by"`
}
