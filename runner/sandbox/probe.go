package sandbox

// Control is one part of the containment on this host, as agentctl doctor shows it.
type Control struct {
	Name string `json:"name"`
	// OK is set when the part is in force. A part that is Needed and not OK
	// makes the level Sandbox impossible here.
	OK     bool `json:"ok"`
	Needed bool `json:"needed"`
	// Why is what was found, Hint how to get the part; "" where it is OK.
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// probed is what a trial sandbox showed.
type probed struct {
	// Missing is why the level Sandbox is not available; "" where it is.
	Missing string `json:"missing"`
	Hint    string `json:"hint"`
	// Landlock and Unenforced as the helper reports them.
	Landlock   int      `json:"landlock"`
	Unenforced []string `json:"unenforced"`
}
