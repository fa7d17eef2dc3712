package control

import (
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// RunID is the id of the newest attempt of the run of an object, which is the
// name of its folder.
func RunID(run *v1alpha1.Run) string { return AttemptID(run, run.Status.Attempt) }

// AttemptID is the id of an attempt of a run, the first of which is 1. It follows
// from the object alone: to begin an attempt twice is to begin it once.
func AttemptID(run *v1alpha1.Run, attempt int32) string {
	const readable = 40
	id := strings.TrimRight(run.Name[:min(len(run.Name), readable)], ".-") + "-" + string(run.UID)
	if attempt > 1 {
		id += "-" + strconv.Itoa(int(attempt))
	}
	return id
}
