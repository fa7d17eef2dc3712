// Package display shows people and programs what the engine reports: runs, changes, findings and lists.
//
// A run is shown by a Renderer, which receives every event and, at the end, the
// run as the fold of package view has it. Verbs hand over values; how they look
// is decided here.
package display

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// Renderer shows one run. Its methods may be called by several goroutines.
type Renderer interface {
	// SetPast is given the run as it was before the first event, where RunOptions did not
	// have it.
	SetPast(past *view.Run)
	// Event shows an event.
	Event(e event.Event)
	// Child shows an event of a run below.
	Child(e event.Event)
	// Notice shows a line that is not an event.
	Notice(text string)
	// Finish shows the end of the run and returns the first error of a write.
	Finish(run *view.Run, journal string) error
}

// The formats of "run -o".
const (
	FormatText  = "text"
	FormatJSON  = "json"
	FormatJSONL = "jsonl"
)

// RunOptions say how a run is shown.
type RunOptions struct {
	// Asks says that a person is asked on the same terminal: between a question
	// and its answer nothing else is written.
	Asks bool
	// Place is where a command that follows finds the run.
	Place Place
	// Past is what a run that is taken up has behind it; nil for a new one. It is
	// read before the first event, which follows from it.
	Past *view.Run
	// Replay is true for a replay: the loop executes a recording, and no program runs.
	Replay bool
	// Mute keeps the answer from stdout.
	Mute bool
	// Chat shows a turn of a chat: answers as Markdown, and of begin and end only what a
	// person who reads on needs.
	Chat bool
	// Broken is called once when stdout takes no more; it may be nil.
	Broken func(error)
}

// NewRun returns the renderer of a format.
func NewRun(format string, stdout, stderr *Screen, o RunOptions) Renderer {
	switch format {
	case FormatJSON:
		return &objectRun{quietRun{stdout: stdout, stderr: stderr, place: o.Place}}
	case FormatJSONL:
		return &linesRun{quietRun: quietRun{stdout: stdout, stderr: stderr, place: o.Place}, broken: o.Broken}
	}
	return newTextRun(stdout, stderr, o)
}

// writeJSON writes a value as indented JSON and leaves <, > and & as they are.
func writeJSON(s *Screen, v any) error {
	enc := json.NewEncoder(objects{s, s.TTY})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
