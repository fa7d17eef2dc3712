package sdk

import (
	"log/slog"
	"os"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Variable is a secret that a result supplies for later calls of other tools, such as the
// token of a login.
type Variable struct {
	// Name of an environment variable; spec.supplies of the Tool lists it.
	Name string
	// Value of 16 to 16,384 printable ASCII characters, none of them a space, a quotation
	// mark or a backslash, and not letters alone. Encode what has others.
	Value string
}

// String is the variable without its value.
func (v Variable) String() string { return v.Name + "=***" }

// GoString is the variable without its value.
func (v Variable) GoString() string { return v.String() }

// Getenv returns the value of a variable that the call is given or, where it is given none
// of that name, that of the program's environment.
func (c *Call) Getenv(name string) string {
	for _, v := range c.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	return os.Getenv(name)
}

// Environ is the environment of programs that are started for the call: that of this
// program, and behind it the variables that the call is given.
func (c *Call) Environ() []string {
	env := os.Environ()
	for _, v := range c.Variables {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// variables are those that a call is given.
func variables(sent []*toolpb.Variable) (all []Variable) {
	for _, v := range sent {
		all = append(all, Variable{Name: v.GetName(), Value: v.GetValue()})
	}
	return all
}

// supplied are the variables of a result. One more than a caller takes is sent, so that
// it can refuse them.
func supplied(all []Variable) (sent []*toolpb.Variable) {
	if len(all) > toolpb.MaxVariables {
		slog.Error("a result has too many variables", "variables", len(all), "limit", toolpb.MaxVariables)
		all = all[:toolpb.MaxVariables+1]
	}
	for _, v := range all {
		sent = append(sent, &toolpb.Variable{Name: valid(v.Name), Value: valid(v.Value)})
	}
	return sent
}
