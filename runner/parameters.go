package runner

import (
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model/provider"
)

// admitted are the options of every admission: the providers are known here.
func admitted(o admission.Options) admission.Options {
	o.Models = provider.All()
	return o
}
