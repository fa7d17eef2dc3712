package coder

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Flag is an argument of a program that calls may pass on.
type Flag struct {
	// Name with its dashes.
	Name string
	// Value is the form of its value; nil: it has none.
	Value *regexp.Regexp
}

// mostArgs bounds the further arguments of a call.
const mostArgs = 16

// Check refuses further arguments that are not on the list of the program. Each flag is a
// word of its own, followed by its value.
func (d *Driver) Check(args []string) error {
	if len(args) > mostArgs {
		return fmt.Errorf("additional_args: %d arguments, at most %d are passed on", len(args), mostArgs)
	}
	for i := 0; i < len(args); i++ {
		at := slices.IndexFunc(d.Flags, func(f Flag) bool { return f.Name == args[i] })
		switch {
		case at < 0:
			return fmt.Errorf("additional_args: %q is not passed on to %s; what is: %s", Clip(args[i], 60), d.Name, d.listed())
		case d.Flags[at].Value == nil:
		case i+1 == len(args):
			return fmt.Errorf("additional_args: %s has no value", args[i])
		default:
			if i++; !d.Flags[at].Value.MatchString(args[i]) {
				return fmt.Errorf("additional_args: %s cannot be %q", args[i-1], Clip(args[i], 60))
			}
		}
	}
	return nil
}

func (d *Driver) listed() string {
	var names []string
	for _, f := range d.Flags {
		if f.Value != nil {
			names = append(names, f.Name+" VALUE")
		} else {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}
