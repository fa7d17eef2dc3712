package runner

import (
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// admitted are the options of every admission: the providers and the sources of tools are known here.
func admitted(o admission.Options) admission.Options {
	o.Models, o.Tools = provider.All(), sources.All()
	return o
}
