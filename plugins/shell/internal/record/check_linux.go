package record

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// nowhere is the program of the trial: there is none.
const nowhere = "/proc/self/agentctl-trial"

// Check reports why commands cannot be recorded here, nil if they can be. It tries once,
// with a launcher that has nothing to execute: what it tries must be seen.
var Check = sync.OnceValue(func() error {
	cmd := exec.Command(nowhere) //nolint:noctx // it ends by itself
	cmd.Dir = "/"
	w, err := Prepare(cmd, Options{Scope: Programs})
	if err != nil {
		return err
	}
	var seen string
	w.observe = func(l *look, _ *attempt, _ error) {
		path, err := l.path(l.args[l.call.path])
		seen = fmt.Sprint(path, err)
	}
	if err := cmd.Start(); err != nil {
		w.Abort()
		return fmt.Errorf("execute the launcher of commands that are recorded: %w", err)
	}
	err = w.Begin()
	_ = cmd.Wait()     // it ends with an error
	w.End(time.Second) // and the goroutine that sees has ended
	switch {
	case !w.Recorded() && err == nil:
		return errors.New("the trial of a record was executed")
	case !w.Recorded():
		return fmt.Errorf("the kernel reports no system calls (seccomp user notification): %w", w.noListener)
	case seen != fmt.Sprint(nowhere, nil):
		return fmt.Errorf("what a command executes cannot be read: %s", seen)
	}
	return nil
})
