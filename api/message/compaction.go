package message

// Compaction marks where a summary replaces the conversation before it.
type Compaction struct {
	// Auto says that no person asked for it; Overflow that the provider had
	// refused the request as too long.
	Auto     bool `json:"auto,omitempty"`
	Overflow bool `json:"overflow,omitempty"`
	// TailStart is the first message that is kept word for word; "" when none is.
	TailStart string `json:"tailStart,omitempty"`
}
