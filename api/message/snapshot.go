package message

// Snapshot is the state of the files.
type Snapshot struct {
	// Hash is the blob that lists path, mode and hash of every file.
	Hash string `json:"hash"`
}

// Patch is a change of the files.
type Patch struct {
	// Hash is the blob of the change.
	Hash  string   `json:"hash"`
	Files []string `json:"files"`
}
