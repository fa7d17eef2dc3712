// Package flags says in plain words what is wrong with a flag on a command line.
package flags

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentctl.dev/agentctl/api/reason"
)

// Explain turns an error of the parser of flags into words for people:
//
//	a flag that is not there       names the one that was meant
//	a value that is none           says what is expected, with an example
//	a flag without its value       says what it is about
//	any other                      is left as it is
func Explain(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %q: %w", e.GetFlag().Name, e.GetValue(), expected(e))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		_, usage := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Errorf("--%s needs a value: %s", e.GetFlag().Name, usage)
	}
	e, ok := errors.AsType[*pflag.NotExistError](err)
	switch {
	case !ok:
		return err
	case e.GetSpecifiedShortnames() == e.GetSpecifiedName() && e.GetSpecifiedName() != "":
		return fmt.Errorf("unknown flag: -%s", e.GetSpecifiedName())
	case e.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: %q of -%s", e.GetSpecifiedName(), e.GetSpecifiedShortnames())
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if s := reason.Nearest(e.GetSpecifiedName(), known); s != "" {
		return fmt.Errorf("unknown flag: --%s; did you mean --%s?", e.GetSpecifiedName(), s)
	}
	return err
}

// expected says what a flag takes; flags of our own say it themselves.
func expected(e *pflag.InvalidValueError) error {
	kind := e.GetFlag().Value.Type()
	switch {
	case errors.Is(e, strconv.ErrRange):
		return errors.New("the number is out of range")
	case kind == "duration":
		return errors.New("a number with its unit is expected, for example 30s, 5m or 1h30m")
	case kind == "int", kind == "int64":
		return errors.New("a whole number is expected")
	case kind == "float64":
		return errors.New("a number is expected")
	case kind == "bool":
		return errors.New("true or false is expected")
	}
	return e.Unwrap()
}
