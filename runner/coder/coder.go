// Package coder runs the coding agents of others as programs: it starts them, reads their events, ends them at their limits, and judges how they ended.
//
// What differs from program to program is a Driver, one file each; Drivers lists them.
// Nothing that a program says of itself is believed: which files it has changed, and
// what it has cost, is found out outside of it.
package coder

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

// Driver is what is known of one program.
type Driver struct {
	// Name is what calls and manifests call it; Program is its file, as it is searched in PATH.
	Name, Program string
	// Tested is the version that the driver was measured with. Another one is started only
	// where a manifest names it.
	Tested string
	// Install is the command that installs the tested version.
	Install string
	// API is the wire format in which it asks its model.
	API API
	// Version finds the version in what --version prints; "" is none.
	Version func(out string) string
	// Flags are those of its own that a call may pass on.
	Flags []Flag
	// Start returns how it is started for a task.
	Start func(t Task) Start
	// Read returns a reader of its events, for one execution.
	Read func() Reader
}

// API is the wire format of a model server.
type API string

// The wire formats, by the path of their requests.
const (
	Chat      API = "/v1/chat/completions"
	Responses API = "/v1/responses"
	Messages  API = "/v1/messages"
)

// Task is what a program is to do, and where. All paths are as the program sees them.
type Task struct {
	// Prompt is the work.
	Prompt string
	// Dir is the folder with the files, Home a folder that is the program's own.
	Dir, Home string
	// Model is the name of the model, Endpoint the server that it is asked at, without a
	// path, and Token what the server wants to be shown.
	Model, Endpoint, Token string
	// Window and Output are how much the model holds and answers, in tokens; 0 is not known.
	Window, Output int64
	// ReadOnly says that the files must not be changed.
	ReadOnly bool
	// Contained says that a sandbox of ours holds the program, which then needs none of its own.
	Contained bool
	// Session is an earlier one to continue; "" begins a new one.
	Session string
	// Args are further arguments, which Check has let pass.
	Args []string
}

// Start is how a program is started.
type Start struct {
	// Args follow the name of the program.
	Args []string
	// Stdin is what it reads from its standard input, to the end.
	Stdin string
	// Env are variables, as NAME=value, besides PATH.
	Env []string
	// Files are made in its home before it starts, by their paths there.
	Files map[string]string
}

// Reader reads the events of a program. What it does not know it leaves out: nothing that
// a program prints is an error.
type Reader interface {
	// Line takes a line of stdout and returns what people see of it; "" is nothing.
	Line(line []byte) (progress string)
	// Said is what the lines came to.
	Said() Said
}

// Said is what a program says of its work: claims, except that it has said them.
type Said struct {
	// Text is the final answer.
	Text string
	// Done says that the event has come which ends a whole answer.
	Done bool
	// Error is what the program calls the cause of its failure; "" is none.
	Error string
	// Denied says that the program itself has refused something that its model asked for.
	Denied bool
	// Session is the id by which the conversation can be continued.
	Session string
	// Steps are the requests to the model that it counts.
	Steps int
	// Commands and Edits are what it says to have executed, and changed: at most mostClaims.
	Commands, Edits []string
	// Began says that at least one event has come.
	Began bool
}

// mostClaims bounds what is kept of what a program says to have done.
const mostClaims = 100

// Claim adds to the claims of a program.
func Claim(all []string, text string) []string {
	if len(all) >= mostClaims || text == "" {
		return all
	}
	return append(all, Clip(text, 200))
}

// Limits of one execution.
type Limits struct {
	// Wall is how long it may take.
	Wall time.Duration
	// First is the time until the first event, Stop the time between the request to end and
	// the end by force.
	First, Stop time.Duration
	// Log is the most bytes that it may print.
	Log int64
}

// DefaultLimits are those of a call that names none.
func DefaultLimits() Limits {
	return Limits{Wall: 300 * time.Second, First: 60 * time.Second, Stop: 3 * time.Second, Log: 64 << 20}
}

// Program is one that was started.
type Program interface {
	// Done is closed when it has ended, and nothing of what it has started is left.
	Done() <-chan struct{}
	// Wait returns then.
	Wait() Exit
	// Kill ends it, and all that it has started: with a request first, by force after grace.
	Kill(grace time.Duration)
}

// Exit is how a program ended: with a code, or by a signal.
type Exit struct {
	Code   int
	Signal string
}

// Job is one execution.
type Job struct {
	Driver *Driver
	Task   Task
	Limits Limits
	// Launch starts the program.
	Launch func(ctx context.Context, s Start, stdout, stderr io.Writer) (Program, error)
	// Progress shows people what the program does. Optional.
	Progress func(text string)
	// Refused is why the model server has refused a request for good; "" if it has not.
	// Optional.
	Refused func() string
}

// Outcome is how an execution ended.
type Outcome = message.CodingOutcome

// Ended is an execution that has ended.
type Ended struct {
	Exit Exit
	Said Said
	// Outcome, why it is not Completed, and what there is to say of one that is.
	Outcome Outcome
	Why     string
	Warning string
	// Stdout and Stderr are what it has printed.
	Stdout, Stderr Printed
	Took           time.Duration
}

// Printed is what a program has printed: the first bytes, and how many there were.
type Printed struct {
	Kept  []byte
	Total int64
}

// excerpt is the length of an excerpt, in characters.
const excerpt = 2048

// Head is the beginning of a text as an excerpt shows it, Tail its end. Both are cut
// between characters.
func Head(text string) string { return Clip(text, excerpt) }

// Tail is the end of a text.
func Tail(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for n := utf8.RuneCountInString(text) - excerpt; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

// Clip is the beginning of a text, of at most so many characters.
func Clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for i := range text {
		if most--; most < 0 {
			return text[:i]
		}
	}
	return text
}

// Event reads one event. ok is false for a line that is none; a member of another type than
// expected is left out.
func Event(line []byte, into any) (ok bool) {
	err := json.Unmarshal(line, into)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || other
}
