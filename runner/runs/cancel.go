package runs

import (
	"fmt"
	"os"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// interrupted is the name of the program that ends its run on an interrupt.
const interrupted = "agentctl"

// Cancel asks the process that executes a run to end it, as Ctrl-C in its terminal does,
// and returns the id of the run, "" if there is none. The reference is as for Get.
//
//	the run                       the error
//	is executed by agentctl       nil: its process was asked
//	is executed by another        a *reason.UsageError that names it
//	program
//	is unknown                    a *reason.UsageError
//	is not executed               another error: it has ended, was killed, or waits
func Cancel(state, ref string) (id string, err error) {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return "", (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	holder, held := journal.HeldBy(found.Dir)
	switch {
	case !held:
		return found.ID, gone(found.ID)
	case holder.Program != interrupted:
		return found.ID, reason.Usagef("run %q is executed by %s", found.ID, holder).WithHint("stop it there")
	}
	process, err := os.FindProcess(holder.PID)
	if err != nil {
		return found.ID, fmt.Errorf("run %q: find %s: %w", found.ID, holder, err)
	}
	defer process.Release() //nolint:errcheck // a handle to a process of somebody else
	// The process id may have been reused: signal the process only if it still holds the
	// journal.
	if again, held := journal.HeldBy(found.Dir); !held || again != holder {
		return found.ID, gone(found.ID)
	}
	if err := process.Signal(os.Interrupt); err != nil {
		return found.ID, fmt.Errorf("run %q: interrupt %s: %w", found.ID, holder, err)
	}
	return found.ID, nil
}

func gone(id string) error {
	return fmt.Errorf("run %q does not go on; agentctl get run/%s shows its state", id, id)
}
