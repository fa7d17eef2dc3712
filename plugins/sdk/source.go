package sdk

import "embed"

// Source is the source of this module. "agentctl plugin init" writes it next to a new tool,
// which is then built from it. A program that does not use Source does not carry it.
//
//go:embed *.go patch/*.go toolpb/*.go toolpb/*.proto go.mod go.sum
var Source embed.FS
