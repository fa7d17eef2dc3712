//go:build !linux

package main

import (
	"fmt"
	"os"
)

func run() int {
	fmt.Fprintln(os.Stderr, "agentctl-sandbox builds sandboxes on Linux only.")
	return 2
}
