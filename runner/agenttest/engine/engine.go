// Package engine declares what the tests of agents need of what executes runs: package runner has it.
package engine

import (
	"context"
	"encoding/json"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/replay"
)

// Engine executes the runs of cases, all of the same manifests. It may be used by many
// goroutines. Its errors are those of a run that has not begun; everything after that is in
// the view of the run.
type Engine interface {
	// Manifests returns the documents and what they declare.
	Manifests() (*manifest.Set, *admission.Catalog)
	// Remote returns the models that the run of a task may ask over a network.
	Remote(t *Task) ([]*v1alpha1.Model, error)
	// CassetteOf returns the recording that a Model answers from; "" for any other Model.
	CassetteOf(model string) string
	// Run executes a task.
	Run(ctx context.Context, t *Task) (*Ended, error)
	// Record executes a task and writes its cassette, if the run is worth it.
	Record(ctx context.Context, t *Task, file string) (*Recorded, error)
	// Replay executes what a cassette holds again, as the task it must have been, with the
	// agent of the manifests. It uses nothing else of the task.
	Replay(ctx context.Context, t *Task, file string) (*Replayed, error)
}

// Task is one run.
type Task struct {
	Agent string
	// Model answers in place of the agent's own; "" leaves that. Models are those of the
	// agents below, by their names.
	Model  string
	Models map[string]string
	Prompt string
	Inputs map[string]json.RawMessage
	// Policies narrow the run.
	Policies []string
	// Workspace is the folder that the run works on a copy of, State its state folder.
	Workspace, State string
	Answers          approval.Person
	Timeout          time.Duration
	// Events and Children are called with the events of the run and of those below it.
	Events, Children func(event.Event)
	// Traced is called with what each policy says; nil: it is not asked.
	Traced func(policy string, t policy.RuleTrace, result bool)
}

// Ended is a run that has ended.
type Ended struct {
	Run *view.Run
	// Dir is its folder.
	Dir string
	// Unseen is the number of events that came too late.
	Unseen int64
}

// Recorded is a run that was to be recorded.
type Recorded struct {
	*Ended
	// Unrecorded is why the cassette is as it was; nil if it holds the run.
	Unrecorded error
	// Unread is why there is no Change: there was no cassette, or it could not be read.
	Unread error
	Change replay.Change
}

// Replayed is a replay that has ended.
type Replayed struct {
	Run *view.Run
	// Divergence is the first difference; nil if there is none.
	Divergence *replay.Divergence
	Notes      []string
}
