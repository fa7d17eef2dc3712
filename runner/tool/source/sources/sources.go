// Package sources lists the kinds of programs behind tools.
package sources

import (
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/agent"
	"agentctl.dev/agentctl/runner/tool/source/builtin"
	"agentctl.dev/agentctl/runner/tool/source/container"
	"agentctl.dev/agentctl/runner/tool/source/exec"
	"agentctl.dev/agentctl/runner/tool/source/plugin"
)

// All are the kinds that are described. One that cannot be opened is not started yet.
func All() tool.Kinds {
	return tool.Kinds{
		builtin.Kind(),
		plugin.Kind(),
		exec.Kind(),
		container.Kind(),
		agent.Kind(),
	}
}
