//go:build !linux

package sdk

import "os"

// shield only remembers stderr: agents run on Linux, other systems build tools.
func (p *process) shield() { p.stderr = os.Stderr }
