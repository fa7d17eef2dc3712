package host

import "agentctl.dev/agentctl/plugins/sdk/toolpb"

// Variable is a secret: a call is given it, or its result supplies it for later calls.
type Variable struct{ Name, Value string }

// String is the variable without its value.
func (v Variable) String() string { return v.Name + "=***" }

// GoString is the variable without its value.
func (v Variable) GoString() string { return v.String() }

// MarshalText encodes the variable without its value.
func (v Variable) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// variables are those that a result supplies, at most one more than it may have, so that
// the caller can refuse them.
func variables(sent []*toolpb.Variable) (all []Variable) {
	for _, v := range sent[:min(len(sent), MaxVariables+1)] {
		all = append(all, Variable{Name: v.GetName(), Value: v.GetValue()})
	}
	return all
}

// MaxVariables is how many variables a result may supply.
const MaxVariables = toolpb.MaxVariables

// given are the variables of a call.
func given(all []Variable) (sent []*toolpb.Variable) {
	for _, v := range all {
		sent = append(sent, &toolpb.Variable{Name: v.Name, Value: v.Value})
	}
	return sent
}
