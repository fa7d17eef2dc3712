//go:build !linux

package record

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// errMissing is what Check reports, and everything that needs a record.
var errMissing = errors.New("programs are recorded with seccomp user notification, which only Linux has")

// Scope is what a filter has the kernel report.
type Scope int

// The scopes.
const (
	Programs Scope = iota + 1
	Everything
)

// Rights are what rules allow.
type Rights struct{}

// Options are how a command is started.
type Options struct {
	Scope  Scope
	Rules  *os.File
	Shell  bool
	Rights *Rights
	Excess func(sdk.Excess)
}

// Watch is a command whose record is in the making: here there is none.
type Watch struct{}

// Check returns why nothing is recorded.
func Check() error { return errMissing }

// Command returns an error: there is no command that binds a shell.
func Command(string, Scope, int, int) (*os.File, error) { return nil, errMissing }

// Prepare returns an error, and leaves the command as it is.
func Prepare(*exec.Cmd, Options) (*Watch, error) { return nil, errMissing }

// Attach returns an error.
func Attach(*os.File, Options) (*Watch, error) { return nil, errMissing }

// Interpreter is not known.
func Interpreter(*os.File) (words []string, script bool) { return nil, false }

// Begin returns an error.
func (w *Watch) Begin() error { return errMissing }

// Abort does nothing.
func (w *Watch) Abort() {}

// Recorded reports that there is no record.
func (w *Watch) Recorded() bool { return false }

// Gone reports that the end of a command's processes is not known.
func (w *Watch) Gone() bool { return false }

// End returns no record.
func (w *Watch) End(time.Duration) *sdk.Record { return nil }
