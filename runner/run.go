package runner

import (
	"encoding/json"
	"io"
	"os"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// RunOptions say what to run and how. Paths or Documents are required.
type RunOptions struct {
	// Paths are files, folders or "-" (Stdin) with manifests.
	Paths []string
	Stdin io.Reader
	// Documents are objects that stand in no file, instead of Paths. Their paths
	// are absolute, and a run whose Run object names no workspace has an empty one.
	Documents []Document
	// ID is the id of the run and the name of its folder; "" makes one. A run
	// whose journal exists already is not begun a second time.
	ID string

	// Agent and Model choose by name where the manifests hold several; Model
	// replaces the agent's own.
	Agent, Model string
	// Prompt is the first user message; it replaces the Run object's. "" leaves that.
	Prompt string
	// Attach are images and PDF files that go to the model with the prompt.
	Attach []string
	// Inputs are data for the agent; they replace single inputs of the Run object.
	Inputs map[string]string

	// Workspace is the folder to work on; "" is the Run object's, else the
	// current folder. InPlace works on the folder itself instead of a copy.
	Workspace string
	InPlace   bool

	// User is who began the run, for rules that read run.user; "" is the local
	// account, and unknown where Documents are given.
	User string

	// State is the folder that holds runs; see statedir.Find.
	State string
	// Approve answers questions: never, prompt, all, "all,R3", or a file of call
	// hashes. "" is prompt where Terminal is set, else never.
	Approve string
	// Terminal is where a person can be asked; nil where nobody is.
	Terminal *Terminal

	// Timeout narrows the agent's limits.timeout; 0 leaves it.
	Timeout time.Duration
	// AllowUnsandboxed runs tools that ask for a sandbox without one.
	AllowUnsandboxed bool
	// Containerd is the socket of containerd; "" is CONTAINERD_ADDRESS, else the
	// default socket.
	Containerd string
	// FailOnDenied ends a run in which a call was refused with exit code 3.
	FailOnDenied bool

	// Record is the file that is to hold the run as a cassette when it has ended; ""
	// records nothing. One that was there is replaced then, at once and whole.
	Record string

	// Pins are what programs must say of tools, by call name, as ToolFacts.Digest: a
	// call whose program says something else is refused with ToolChanged. A tool
	// without one is held to what its program says when it is first started.
	Pins map[string]string

	// Shared is given to all runs of a process that has many; nil shares nothing.
	Shared *Shared
	// Version of the program, for the journal.
	Version string
	// Events is told every event once and in order, as soon as it is in the
	// journal, by a goroutine of its own. The run never waits for it; what it is
	// slow to take it is told later, at the latest when the run has ended, before
	// Run returns. See Outcome.Unseen.
	Events func(event.Event)
	// Kill, when closed, ends the run without any grace: the second Ctrl-C.
	Kill <-chan struct{}
	// Leave, when closed, leaves the run as it stands: its programs are ended, and
	// nothing more is written, as if the process had been killed. Resume goes on
	// with it. Its Outcome has no Finished.
	Leave <-chan struct{}
	// Drain, when closed, leaves the run at the next moment when no call is in
	// progress: what has begun has its result, and nothing further begins.
	Drain <-chan struct{}

	// Present judges calls that have waited for a person also by the policies as they
	// are when they go on, at a control plane. nil: the plan's policies hold.
	Present PresentPolicies

	disk disk
	// maxListed bounds the files of which changes are listed; 0 is the usual limit.
	maxListed int
	// renew replaces a cassette only by a run that is worth it; inputs, attached and
	// retold are those of a recorded run.
	renew    bool
	inputs   map[string]json.RawMessage
	attached []attachment
	retold   []retold
}

// disk is how the journal reaches the disk, for tests that die on the way; the
// zero value is the system's own way.
type disk struct {
	write func(*os.File, []byte) (int, error)
	sync  func(*os.File) error
}

// Terminal is a place to ask a person.
type Terminal struct {
	In  io.Reader
	Out io.Writer
}

// Outcome is a run that has ended, whatever the end.
type Outcome struct {
	Run *view.Run
	// Journal is the folder of the run: events, blobs, workspace.
	Journal string
	// Unseen is the number of events that RunOptions.Events has not taken: it
	// stood still for ten seconds at the end of the run, one second when the run
	// was stopped, and was given up. Its last call may not have returned yet.
	Unseen int64
	// Unrecorded says why there is no cassette of the run although there was to be
	// one; nil when there is, or was not to be.
	Unrecorded error
}

// Result is the outcome as one object for programs.
func (o *Outcome) Result() view.Result { return o.Run.Result(o.Journal) }

// ExitCode is the exit code of the command line.
func (o *Outcome) ExitCode() int {
	if o.Run.Finished == nil {
		return 1
	}
	return o.Run.Finished.ExitCode
}
