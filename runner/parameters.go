package runner

import (
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/source"
)

// admitted are the options of every admission: the providers are known here.
func admitted(o admission.Options) admission.Options {
	o.Models, o.Build = provider.All(), source.Build
	return o
}
