package main

import (
	"maps"

	"agentctl.dev/agentctl/runner/storytest"
)

// storyPrograms are what this program is under another name: the programs that stories
// start. The MCP server is not that of the command line's tests, which uses the library:
// only two packages of the module do that.
func storyPrograms() map[string]func() {
	programs := map[string]func(){"mcp-server": mcpServer}
	maps.Copy(programs, storytest.Programs())
	return programs
}
