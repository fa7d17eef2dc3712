package main

import (
	"slices"

	"agentctl.dev/agentctl/plugins/files"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell"
	"agentctl.dev/agentctl/plugins/web"
)

// shipped are the tools that this program serves.
func shipped() []sdk.Tool {
	return slices.Concat(files.Tools(), shell.Tools(), web.Tools())
}
