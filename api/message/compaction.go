package message

// Compaction marks where a summary replaces the conversation before it.
type Compaction struct {
	// Auto says that no person asked for it; Overflow that the provider had
	// refused the request as too long.
	Auto     bool `json:"auto,omitempty"`
	Overflow bool `json:"overflow,omitempty"`
	// TailStart is the first message that is kept word for word; "" when none is.
	TailStart string `json:"tailStart,omitempty"`
	// Todos is the todo list of the run at that time, which stays word for word; nil
	// when the messages that are kept have it.
	Todos Todos `json:"todos,omitempty"`
}
