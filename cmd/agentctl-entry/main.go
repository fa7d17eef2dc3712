// Command agentctl-entry is the first process of the containers that agentctl
// starts. It comes into each of them by a read-only mount.
package main

import (
	"os"

	"agentctl.dev/agentctl/runner/sandbox/container/entry"
)

func main() { os.Exit(entry.Main(os.Args[1:], os.Stderr)) }
