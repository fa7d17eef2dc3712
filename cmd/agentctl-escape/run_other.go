//go:build !linux

package main

import (
	"fmt"
	"io"
)

func run(_ []string, _ io.Reader, _, errs io.Writer) int {
	fmt.Fprintln(errs, "agentctl-escape tries to get out of sandboxes, which agentctl has on Linux only.")
	return 2
}
