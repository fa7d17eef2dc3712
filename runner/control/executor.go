package control

import (
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
)

// Work is a run that is to be executed.
type Work struct {
	// ID is the run's id, which follows from the object: starting it twice is
	// starting it once.
	ID string
	// Namespace and Agent are what fairness is between.
	Namespace, Agent string
	// Name of the Run object.
	Name string
	// User is the identity that began the run, where that is known.
	User string
	// Documents are what the run is made of; none for one that has begun before.
	Documents []runner.Document
	// Deadline of a run with a timeout of its own, which counts from the request;
	// zero without one.
	Deadline time.Time
	// Pins are what the programs of its tools have to say, as in runner.RunOptions.
	Pins map[string]string
}

// Progress is how far a run has come.
type Progress string

// What an executor knows of a run.
const (
	// Unknown: the executor has no record of it.
	Unknown Progress = ""
	// Left: it has begun, and no worker executes it.
	Left Progress = "Left"
	// Waiting: it was suspended, and what it asked has not been answered.
	Waiting Progress = "Waiting"
	// Queued: it waits for a free worker.
	Queued Progress = "Queued"
	// Living: a worker executes it.
	Living Progress = "Living"
	// Ended: it has ended, was suspended, or could not begin.
	Ended Progress = "Ended"
)

// Observation is what can be seen of a run.
type Observation struct {
	Progress Progress
	// Status is a projection of the run's events; conditions are left out.
	Status v1alpha1.RunStatus
	// Reason and Message of the end.
	Reason, Message string
	// Err is why the run could not be started; trying again will not help.
	Err error
}

// Executor executes runs: in this process, or elsewhere.
//
//	Start    starts a run, or continues one that was left. It does nothing for
//	         a run that the executor has already.
//	Cancel   ends a run. It ignores a run that the executor does not have.
//	Suspend  stops executing a run, whose journal stays, and forgets one that is
//	         only queued; Start continues it.
//	Observe  reports the progress of a run, without waiting.
//	Release  forgets a run that has ended; its files stay.
type Executor interface {
	Start(Work)
	Cancel(id string)
	Suspend(id string)
	Observe(id string) Observation
	Release(id string)
	// Follow has changed called with the namespace and the name of a Run whenever
	// there is something new to observe, beside those that were to be called before.
	Follow(changed func(namespace, name string))
}
