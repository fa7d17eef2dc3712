package message

// Incoming is a message that somebody sent to a run while it went on.
type Incoming struct {
	// ID is unique in the run: a message counts once.
	ID   string `json:"id"`
	Text string `json:"text"`
	// By says who sent it.
	By string `json:"by,omitempty"`
	// PostedAt is when, in milliseconds since 1970.
	PostedAt int64 `json:"postedAt,omitempty"`
}
