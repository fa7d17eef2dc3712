package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/cmd/internal/flags"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

// exitPipe is the exit code of a program whose reader has gone away: 128 and the
// number of SIGPIPE, as a shell reports it.
const exitPipe = 141

// maxFindings bounds a report: more mistakes than that have one cause.
const maxFindings = 20

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct {
	err error
	// meant is the command line that was probably meant, or "".
	meant string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func (e *usageError) try(meant string) *usageError {
	e.meant = meant
	return e
}

func usage(err error) *usageError { return &usageError{err: err} }

func usagef(format string, args ...any) *usageError { return usage(fmt.Errorf(format, args...)) }

// exitError ends the program with a code; what is to be said has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func exit(code int) error {
	if code == reason.ExitOK {
		return nil
	}
	return exitError(code)
}

// codeError is an error with a code of the verb's own.
type codeError struct {
	err  error
	code int
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// report shows an error and returns the exit code that belongs to it.
//
//	error               shown as                           exit code
//	nil                 -                                  0
//	the reader left     -                                  141
//	exitError           -                                  its code
//	InvalidError        every finding                      2
//	usage               one line, what was meant, --help   2
//	with a reason       one line and its hint              that of the reason
//	of a control plane  one line and its hint              1
//	any other           one line                           1
//	codeError           as the error in it                 its code
func (a *app) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return reason.ExitOK
	}
	if display.BrokenPipe(err) {
		return exitPipe
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if c, ok := errors.AsType[*codeError](err); ok {
		a.report(cmd, c.err)
		return c.code
	}
	stderr := a.stderr()
	if invalid, ok := errors.AsType[*runner.InvalidError](err); ok {
		_ = invalid.Write(display.Mistakes(stderr), maxFindings) // there is no other place to complain
		return reason.ExitUsage
	}
	see := cmd.CommandPath() + " --help"
	if u, ok := errors.AsType[*usageError](err); ok {
		display.Error(stderr, err, display.Advice{Meant: u.meant, See: see})
		return reason.ExitUsage
	}
	if u, ok := errors.AsType[*reason.UsageError](err); ok {
		display.Error(stderr, err, display.Advice{Hint: u.Hint, See: see})
		return reason.ExitUsage
	}
	display.Error(stderr, err, display.Advice{Hint: cmp.Or(reason.Hint(err), client.Hint(err))})
	return reason.Of(err).ExitCode()
}

// complain shows errors about several objects. What an identity may not do is said
// once, and so is a hint.
func (a *app) complain(all ...error) {
	type denied struct {
		err       error
		resources []string
		objects   int
	}
	var order []client.Denial
	denials := map[client.Denial]*denied{}
	said := map[string]bool{}
	show := func(err error, hint string) {
		if said[hint] {
			hint = ""
		}
		said[hint] = true
		display.Error(a.stderr(), err, display.Advice{Hint: hint})
	}
	for _, err := range all {
		d, what, ok := client.Denied(err)
		if !ok {
			show(err, client.Hint(err))
			continue
		}
		if denials[d] == nil {
			denials[d], order = &denied{err: err}, append(order, d)
		}
		same := denials[d]
		same.objects++
		if !slices.Contains(same.resources, what) {
			same.resources = append(same.resources, what)
		}
	}
	for _, d := range order {
		same := denials[d]
		if same.objects > 1 {
			same.err = fmt.Errorf("%d objects: %s", same.objects, d.Text(same.resources))
		}
		show(same.err, d.Hint())
	}
}

// flagError explains a flag that is wrong.
func flagError(cmd *cobra.Command, err error) error {
	e := usage(flags.Explain(cmd, err))
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && slices.Contains([]string{"version", "v", "V"}, unknown.GetSpecifiedName()) {
		return e.try("agentctl version")
	}
	return e
}

// noArgs refuses words that are not flags.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}

// oneArg asks for exactly one word; what names it.
func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("%s is missing", what)
		case 1:
			return nil
		}
		return usagef("unexpected argument %q after %s", args[1], what)
	}
}

// subcommand refuses a word that is not a command of its parent.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	err := usagef("unknown command %q of %s", args[0], cmd.CommandPath())
	if s := reason.Nearest(args[0], known); s != "" {
		return err.try(cmd.CommandPath() + " " + s)
	}
	return err
}
