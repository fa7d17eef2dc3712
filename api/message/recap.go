package message

// Recap is what a conversation had come to when it was shortened, for people who read it:
// it is part of the message that began it. The model reads the summary itself.
type Recap struct {
	// Title is one line, at most 100 characters.
	Title string `json:"title,omitempty"`
	// Body is the summary.
	Body string `json:"body,omitempty"`
	// Diffs are the files that calls had changed by then, as their results say, at most
	// 200, sorted.
	Diffs []FileDiff `json:"diffs,omitempty"`
}

// FileDiff counts what calls have changed in a file.
type FileDiff struct {
	File      string `json:"file"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}
