package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/secret"
)

// maxSupplied bounds the different values that the results of one run supply: each is
// searched for in all that the run writes.
const maxSupplied = 64

// supplied are the variables that results of a run have supplied for later calls. They
// are in memory only: a run that is resumed has none.
type supplied struct {
	mu     sync.Mutex
	values map[supply]secret.Value
	// hidden are all values that were supplied, also those that others have replaced.
	hidden map[string]bool
}

// supply names a value: metadata.name of the Tool that supplies it, and the variable.
type supply struct{ tool, name string }

// supply takes the variables of a reply out of it, before anything of it is recorded: they
// are hidden from then on, and given to later calls of the tools that declare them. All are
// refused if one is, and the call is an error then.
func (r *Registry) supply(d *Definition, req host.CallRequest, reply *Reply) {
	sent := reply.Variables
	reply.Variables = nil
	if len(sent) == 0 {
		return
	}
	err := r.hide(d, req, sent)
	if reply.Failed { // it supplies nothing, and the error is its own
		return
	}
	if err != nil {
		reply.Failed, reply.Code = true, message.CodeTool
		reply.Output = join(strings.TrimRight(reply.Output, "\n"), "The call was made, but the variables that its result supplies are refused, all of them: "+err.Error())
		return
	}
	r.supplied.mu.Lock()
	defer r.supplied.mu.Unlock()
	if r.supplied.values == nil {
		r.supplied.values = map[supply]secret.Value{}
	}
	for _, v := range sent {
		r.supplied.values[supply{d.Object, v.Name}] = secret.NewValue(v.Value)
	}
}

// hide checks variables, and hides the values that can be hidden even if others cannot.
func (r *Registry) hide(d *Definition, req host.CallRequest, sent []host.Variable) error {
	if r.Keep == nil || d.Object == "" || len(d.Spec.Supplies) == 0 {
		return fmt.Errorf("spec.supplies of the Tool lists no variables")
	}
	var errs []error
	if len(sent) > host.MaxVariables {
		errs = append(errs, fmt.Errorf("a result supplies at most %d", host.MaxVariables))
	}
	seen := map[string]bool{}
	for _, v := range sent {
		err := d.mayHold(v.Name)
		if seen[v.Name] {
			err = fmt.Errorf("%s is supplied twice", v.Name)
		}
		seen[v.Name] = true
		hidden := hideable(v.Value)
		if hidden == nil {
			hidden = unknownTo(req, v.Value)
		}
		if hidden == nil {
			hidden = r.keep(v.Value)
		}
		if hidden != nil {
			hidden = fmt.Errorf("the value of %.100q %w", v.Name, hidden)
		}
		errs = append(errs, err, hidden)
	}
	return errors.Join(errs...)
}

// keep hides a value, unless there are too many.
func (r *Registry) keep(value string) error {
	r.supplied.mu.Lock()
	defer r.supplied.mu.Unlock()
	switch {
	case r.supplied.hidden[value]:
		return nil
	case len(r.supplied.hidden) == maxSupplied:
		return fmt.Errorf("is one too many: the results of a run supply at most %d different values", maxSupplied)
	case r.supplied.hidden == nil:
		r.supplied.hidden = map[string]bool{}
	}
	r.supplied.hidden[value] = true
	r.Keep(value)
	return nil
}

// mayHold refuses a variable that results of the tool must not supply.
func (d *Definition) mayHold(name string) error {
	if slices.Contains(d.Spec.Supplies, name) {
		return Suppliable(name) // admission has said so; a plan may be older
	}
	return fmt.Errorf("spec.supplies of the Tool does not list %.100q", name)
}

// variables are what a call is given of what other calls have supplied; the text says what
// is missing.
func (r *Registry) variables(d *Definition) (all []host.Variable, missing string) {
	r.supplied.mu.Lock()
	defer r.supplied.mu.Unlock()
	for _, e := range d.Spec.Env {
		if e.SuppliedBy == nil {
			continue
		}
		value, ok := r.supplied.values[supply{e.SuppliedBy.Name, e.Name}]
		if !ok {
			return nil, fmt.Sprintf("Nothing was run: %s needs the variable %s, which a call of %s supplies, and none has supplied it since the run was started or resumed. "+
				"Call %[3]s (again), then repeat this call.", d.Name, e.Name, r.called(e.SuppliedBy.Name))
		}
		all = append(all, host.Variable{Name: e.Name, Value: value.Reveal()})
	}
	return all, ""
}

// called is what the model calls a Tool.
func (r *Registry) called(object string) string {
	for _, name := range r.names {
		if d := r.byName[name]; d.Object == object {
			return d.Program()
		}
	}
	return object
}
