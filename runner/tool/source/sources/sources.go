// Package sources lists the kinds of tool programs.
package sources

import (
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/agent"
	"agentctl.dev/agentctl/runner/tool/source/builtin"
	"agentctl.dev/agentctl/runner/tool/source/container"
	"agentctl.dev/agentctl/runner/tool/source/exec"
	"agentctl.dev/agentctl/runner/tool/source/mcp"
	"agentctl.dev/agentctl/runner/tool/source/plugin"
)

// All are the kinds with a description. A kind that cannot be opened is not
// implemented yet.
func All() tool.Kinds {
	return tool.Kinds{
		builtin.Kind(),
		plugin.Kind(),
		exec.Kind(),
		container.Kind(),
		mcp.Kind(),
		agent.Kind(),
	}
}
