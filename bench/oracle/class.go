//go:build linux && amd64

package main

// class names the mechanism of a finding.
func class(r result) string {
	return string(r.Missing[0].Kind) + " by " + r.Missing[0].By
}
