// Package cassette is the file format of a recorded run: its journal, its plan and the input from its environment, in one portable file.
//
// A cassette is JSON, one object a line. Each line ends with a hash over the line before
// it and itself, so that a changed, lost, added or moved byte is found and located:
//
//	{"cassette":"agentctl.dev/v1","version":…,"recorded":…,"run":…,"agent":…,"hash":…}
//	{"plan":{…},"hash":…}                  the manifests as the run resolved them
//	{"tool":{"name":…},"hash":…}           the description of a tool that the model read
//	{"blob":{"id":…,"base64":…},"hash":…}  a file that the model was shown
//	{"facts":{"prices":{…},…},"hash":…}    the prices and limits of the models then
//	{"seq":1,"time":…,"type":…,"hash":…}   the events, as in the journal
//	{"end":{"lines":14,"head":…},"hash":…}
//
// No other blob of the run is in it: the events show what a run did, and files of a workspace may hold undeclared secrets.
package cassette

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Format is the version of the format.
const Format = "agentctl.dev/v1"

// Bounds of what is read.
const (
	// MaxLine is more than an event of a journal may have.
	MaxLine = 32 << 20
	// MaxSize of a file, and MaxLines of it.
	MaxSize  = 512 << 20
	MaxLines = 1 << 20
)

// Limits that no run exceeds, above which a replay would take hours.
const (
	maxResumes = 1000
	maxCalls   = 10_000 // of one answer
)

// Header is the first line.
type Header struct {
	// Cassette is Format.
	Cassette string `json:"cassette"`
	// Version of agentctl that recorded.
	Version string `json:"version"`
	// Recorded is when, in UTC as RFC 3339.
	Recorded string `json:"recorded"`
	// Run and Agent by name.
	Run   string `json:"run"`
	Agent string `json:"agent"`
}

// Tool is a tool as it was when the run began.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	// Of is the call name of the Tool that this is a function of, Function what its
	// program calls it; "" for a Tool with one function.
	Of       string `json:"of,omitempty"`
	Function string `json:"function,omitempty"`
	// Hidden tools were not offered to the model: no call of them could be allowed.
	Hidden bool `json:"hidden,omitempty"`
}

// Blob is a file that was attached to the prompt or returned by a tool, under the id that
// run.started or the result of the call names.
type Blob struct {
	ID      string `json:"id"`
	Content []byte `json:"base64"`
}

// Facts are what the run knew of its models: where the manifests do not say it,
// a later version of agentctl may know better, and would count otherwise.
type Facts struct {
	// Prices by the models' names, where they were known.
	Prices map[string]Price `json:"prices,omitempty"`
	// Window is what the agent's model holds in tokens, SummarizerWindow what the
	// model holds that writes the summaries; 0 is not known.
	Window           int64 `json:"window,omitempty"`
	SummarizerWindow int64 `json:"summarizerWindow,omitempty"`
	// PromptBytes is the size of the request before the conversation, as it was counted:
	// schemas are stored without their white space. 0 is not known.
	PromptBytes int64 `json:"promptBytes,omitempty"`
	// ReserveOutput is the most an answer was thought to hold.
	ReserveOutput int64 `json:"reserveOutput,omitempty"`
}

// Price is what the tokens of a model cost. Long applies above LongAbove tokens of input,
// if that is set.
type Price struct {
	v1alpha1.Pricing
	LongAbove int64             `json:"longAbove,omitempty"`
	Long      *v1alpha1.Pricing `json:"long,omitempty"`
}

// Cassette is a recorded run.
type Cassette struct {
	// Name of the file, as errors call it.
	Name string
	Header
	// Plan is the run's plan, as its journal keeps it: references to secrets, never
	// their values.
	Plan   json.RawMessage
	Tools  []Tool
	Blobs  []Blob
	Facts  Facts
	Events []event.Event

	// first is the line of the first event.
	first int
}

// Line returns the line of the event at a place in Events, counted from 1.
func (c *Cassette) Line(i int) int { return c.first + i }

// end is the last line.
type end struct {
	// Lines of the file, this one included.
	Lines int `json:"lines"`
	// Head is the hash of the line before.
	Head string `json:"head"`
}
