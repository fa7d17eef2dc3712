package message

import "encoding/json"

// Publication is an item that a run has prepared for publication. Nothing has been sent.
type Publication struct {
	// Name of the entry of spec.publish that it belongs to, and Type of that entry.
	Name string `json:"name"`
	Type string `json:"type"`
	// Title of a pull request.
	Title string `json:"title,omitempty"`
	// Body is its text.
	Body string `json:"body,omitempty"`
	// Data is a JSON object for a webhook.
	Data json.RawMessage `json:"data,omitempty"`
}
