package plan

import (
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/tool"
)

// Registries are the model providers and the kinds of tool sources that exist.
type Registries struct {
	Providers model.Registry
	Sources   tool.Kinds
}

// Admission returns the options of an admission that knows them.
func (r Registries) Admission(o admission.Options) admission.Options {
	o.Models, o.Tools = r.Providers, r.Sources
	return o
}
