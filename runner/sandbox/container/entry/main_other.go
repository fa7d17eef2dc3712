//go:build !linux

package entry

import (
	"fmt"
	"io"
)

// Main reports that containers run on Linux only.
func Main(_ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "agentctl-entry runs in Linux containers only.")
	return exitUsage
}
