package tool

import "agentctl.dev/agentctl/runner/sandbox/spec"

// HeldEnvironment is the whole environment of a program that is contained as a
// profile says, or, where there is none, of one that is not.
func HeldEnvironment(p *spec.Profile, declared []string) []string {
	if p == nil {
		return Environment(declared)
	}
	return contained(p, declared)
}
