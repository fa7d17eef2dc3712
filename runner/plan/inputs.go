package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/tool"
)

// Ask returns the prompt and the inputs that a run of the plan begins with which is given
// these, or none.
func (p *Plan) Ask(prompt string, inputs map[string]json.RawMessage) (string, map[string]json.RawMessage, error) {
	asked := *p
	err := asked.fillPrompts(&Options{Prompt: prompt, RecordedInputs: inputs})
	return asked.Prompt, asked.Inputs, err
}

// fillPrompts fills the inputs into the instructions and the prompt.
func (p *Plan) fillPrompts(o *Options) error {
	var err error
	if p.Inputs, err = p.mergedInputs(o); err != nil {
		return err
	}
	p.Origins = p.origins(o)
	if p.Served {
		p.Prompt = servedPrompt
		return nil
	}
	if p.Carried != nil {
		p.Prompt = p.carriedPrompt()
		return nil
	}
	if err := p.findMentions(o); err != nil {
		return err
	}
	if o.template != nil {
		if p.Prompt, err = o.template.Fill(o.Arguments, p.Inputs); err != nil {
			return fmt.Errorf("command /%s: %w", o.Command, err)
		}
		return p.fillInstructions()
	}
	switch {
	case o.Prompt != "":
		p.Prompt = prompt.EscapeData(o.Prompt, o.Data...)
	case p.Run != nil && p.Run.Spec.Prompt != "":
		p.Prompt = p.Run.Spec.Prompt
	default:
		p.Prompt = defaultPrompt
	}
	if p.Prompt, err = prompt.Fill(p.Prompt, p.Inputs); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	return p.fillInstructions()
}

func (p *Plan) fillInstructions() (err error) {
	if p.Instructions, err = prompt.Fill(p.Agent.Spec.Instructions, p.Inputs); err != nil {
		return fmt.Errorf("agent %q: spec.instructions: %w", p.Agent.Name, err)
	}
	_, err = p.Targets()
	return err
}

// mergedInputs are the inputs of the Run object or of a recorded run, replaced by those
// of the command line, with the schema's defaults for those that are missing, and validated
// against the agent's schema.
func (p *Plan) mergedInputs(o *Options) (map[string]json.RawMessage, error) {
	all, err := p.runInputs()
	if err != nil {
		return nil, err
	}
	maps.Copy(all, o.RecordedInputs)
	for name, text := range o.Inputs {
		raw, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		all[name] = raw
	}
	contract, of := p.Agent.Spec.Inputs, fmt.Sprintf("agent %q", p.Agent.Name)
	if p.Carried != nil && p.Carried.Plan.Inputs != nil {
		contract, of = p.Carried.Plan.Inputs, fmt.Sprintf("the plan of skill %q", p.Carried.Skill)
	}
	if contract == nil {
		if len(o.Inputs) > 0 {
			return nil, fmt.Errorf("agent %q takes no inputs, and %s is given: leave --input out, or declare spec.inputs.schema in the Agent",
				p.Agent.Name, strings.Join(slices.Sorted(maps.Keys(o.Inputs)), ", "))
		}
		return all, nil
	}
	schema, err := tool.NewSchema(contract.Schema.Raw)
	if err != nil {
		return nil, fmt.Errorf("%s: inputs.schema: %w", of, err)
	}
	unknown, declared := schema.Undeclared(slices.Collect(maps.Keys(all)))
	for _, name := range unknown {
		p.Warnings = append(p.Warnings, fmt.Sprintf("input %q is not declared by %s: %s", name, of,
			cmp.Or(manifest.Suggest(name, declared), "it has "+strings.Join(declared, ", "))))
	}
	for name, value := range schema.Defaults() {
		if _, given := all[name]; !given {
			all[name] = value
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if raw, err = schema.CheckInputs(raw); err != nil {
		return nil, ungiven(fmt.Errorf("inputs of %s: %w", of, err))
	}
	clear(all)
	return all, json.Unmarshal(raw, &all)
}

// usage makes a mistake of the caller of an error, with the hint that it has.
func usage(err error) error {
	if u, ok := errors.AsType[*reason.UsageError](err); ok {
		return u
	}
	return &reason.UsageError{Err: err}
}

// ungiven adds to an error about inputs how those that are missing are given.
func ungiven(err error) error {
	wrong, ok := errors.AsType[*tool.InputsError](err)
	if !ok || len(wrong.Missing) == 0 {
		return err
	}
	flags := make([]string, len(wrong.Missing))
	for i, name := range wrong.Missing {
		flags[i] = "--input " + name + "=VALUE"
	}
	return reason.Usagef("%w", err).WithHint(strings.Join(flags, " "))
}

// runInputs are the inputs of the Run object.
func (p *Plan) runInputs() (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if p.Run != nil && p.Run.Spec.Inputs != nil && len(p.Run.Spec.Inputs.Raw) > 0 {
		if err := json.Unmarshal(p.Run.Spec.Inputs.Raw, &all); err != nil {
			return nil, fmt.Errorf("spec.inputs of the run: %w", err)
		}
	}
	return all, nil
}
