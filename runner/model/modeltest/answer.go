package modeltest

import "unicode/utf8"

// Answer is the answer of a model in one step, independent of a wire format.
type Answer struct {
	Text, Reasoning string
	// Hidden: the model thinks and shows none of it; what the API requires back is sent
	// without a text. Formats without signatures send nothing.
	Hidden bool
	Calls  []Call
	// Finish is the word for the end on the wire; by default the one for a
	// complete answer, or for calls.
	Finish string
	// Usage is what the API counts; nil sends no usage.
	Usage *Usage
	// TextSize and ArgsSize are the bytes of text and of arguments in one event.
	// Default: 24, and all arguments at once.
	TextSize, ArgsSize int
	// NoDone leaves out the event after the last one with content.
	NoDone bool
}

// Call is a tool call; Args is what the model writes as arguments, JSON or not.
// An API that sends arguments as an object can only send an object.
type Call struct{ ID, Tool, Args string }

// Usage counts tokens. Prompt holds what was read from and written to a cache,
// Completion holds the reasoning.
type Usage struct{ Prompt, Completion, Cached, CacheWrite, Reasoning int }

// Step is the streamed answer, in the wire format of the server that sends it.
func (a Answer) Step() Step { return Step{Header: eventStream(), answer: &a} }

// texts are the pieces of a text.
func (a Answer) texts(s string) []string {
	size := a.TextSize
	if size <= 0 {
		size = 24
	}
	return split(s, size)
}

// args are the pieces of a call's arguments.
func (a Answer) args(c Call) []string {
	size := a.ArgsSize
	if size <= 0 {
		size = max(1, len(c.Args))
	}
	return split(c.Args, size)
}

// finish is the word for the end, one of two by default.
func (a Answer) finish(stop, calls string) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.Calls) > 0:
		return calls
	}
	return stop
}

// split cuts a text into pieces of about size bytes, never inside a character.
func split(s string, size int) []string {
	var out []string
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}
