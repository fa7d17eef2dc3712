//go:build !linux

package shell

import (
	"errors"
	"os"
	"os/exec"

	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell/internal/record"
)

// rules bind nothing: Landlock is a part of Linux. Calls are as on a Linux without it.
type rules struct {
	*os.File
	rights record.Rights
}

// leastABI is more than landlockABI returns.
const leastABI = 1

func landlockABI() int { return 0 }

var errBind = errors.New("calls are bound by Landlock, which only Linux has")

func bind(*sdk.Binding, string, []string, string) (*rules, error) {
	return nil, nil //nolint:nilnil // there is nothing to apply
}

func newRules(bool) (*rules, error) {
	return nil, nil //nolint:nilnil // there is nothing to apply
}

func (r *rules) add(*sdk.Binding, string, string) error { return errBind }

func (r *rules) start(*exec.Cmd) error { return errBind }

func (r *rules) end() {}
