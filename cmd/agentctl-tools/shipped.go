package main

import (
	_ "embed"
	"slices"

	"agentctl.dev/agentctl/plugins/files"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell"
	"agentctl.dev/agentctl/plugins/web"
)

// described is what --describe prints; make generate renews it.
//
//go:embed described.json
var described []byte

// shipped are the tools that this program serves.
func shipped() []sdk.Tool {
	return slices.Concat(files.Tools(), shell.Tools(), web.Tools())
}
