package plan

import (
	"cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Origins are where the prompt and each input of a run come from. A kind that is "" is not
// known: the run was recorded by an earlier version.
type Origins struct {
	Prompt message.Origin
	Inputs map[string]message.Origin
}

// originsOf are those of a recorded run.
func originsOf(started event.RunStarted) Origins {
	o := Origins{Inputs: started.InputOrigins}
	if started.Origin != nil {
		o.Prompt = *started.Origin
	}
	return o
}

// origins are those of the prompt and of the merged inputs. A Run object in a file is the
// author's like every manifest; one without a file is the request of a user to a control
// plane. Defaults of the agent's schema are the author's.
func (p *Plan) origins(o *Options) Origins {
	written, user := message.Origin{Kind: message.OriginAuthor}, message.Origin{Kind: message.OriginUser}
	if len(o.Documents) > 0 {
		written = user
	}
	all := Origins{Prompt: message.Origin{Kind: message.OriginRunner}, Inputs: map[string]message.Origin{}}
	switch {
	case p.modelless():
	case o.Prompt != "" || o.template != nil: // the author's text holds what a user has added
		all.Prompt = user
		if recorded := o.RecordedOrigins.Prompt; recorded.Kind != "" {
			all.Prompt = recorded
		}
	case p.Run != nil && p.Run.Spec.Prompt != "":
		all.Prompt = written
	}
	given, _ := p.runInputs() // they were merged before
	for name := range p.Inputs {
		from := message.Origin{Kind: message.OriginAuthor}
		if _, ok := given[name]; ok {
			from = written
		}
		if _, ok := o.RecordedInputs[name]; ok {
			from = cmp.Or(o.RecordedOrigins.Inputs[name], user)
		}
		if _, ok := o.Inputs[name]; ok {
			from = user
		}
		all.Inputs[name] = from
	}
	return all
}

// asked are the origins of a plan whose prompt and inputs the model of this one has
// written.
func (p *Plan) asked(child *Plan) Origins {
	agent := message.Origin{Kind: message.OriginAgent, Name: p.Agent.Name}
	all := Origins{Prompt: agent, Inputs: map[string]message.Origin{}}
	for name := range child.Inputs {
		all.Inputs[name] = agent
	}
	return all
}

// Record writes the origins down in the first event of a run, whose user is named already.
func (o Origins) Record(started *event.RunStarted) {
	named := func(from message.Origin) message.Origin {
		if from.Kind == message.OriginUser && from.Name == "" {
			from.Name = started.User
		}
		return from
	}
	if o.Prompt.Kind != "" {
		prompt := named(o.Prompt)
		started.Origin = &prompt
	}
	for name, from := range o.Inputs {
		if from.Kind == "" {
			continue
		}
		if started.InputOrigins == nil {
			started.InputOrigins = map[string]message.Origin{}
		}
		started.InputOrigins[name] = named(from)
	}
}
