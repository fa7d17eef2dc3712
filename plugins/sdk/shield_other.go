//go:build !linux

package sdk

import "os"

// shield only remembers the streams: agents run on Linux, other systems build tools.
func (p *process) shield() { p.handshake, p.stderr = os.Stdout, os.Stderr }
