package sandbox

// Control is one part of the containment on this host, as agentctl doctor shows it.
type Control struct {
	Name string `json:"name"`
	// OK says that the part is in force. One that is not OK and Needed makes the
	// level Sandbox impossible here.
	OK     bool `json:"ok"`
	Needed bool `json:"needed"`
	// Why says what was found, Hint how to get the part; "" where it is OK.
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// probed is what a trial sandbox showed.
type probed struct {
	// Missing says why there is no level Sandbox; "" where there is.
	Missing string `json:"missing"`
	Hint    string `json:"hint"`
	// Landlock and Unenforced as the helper reports them.
	Landlock   int      `json:"landlock"`
	Unenforced []string `json:"unenforced"`
}
