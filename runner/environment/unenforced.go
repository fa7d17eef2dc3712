package environment

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// unenforced reports a sandbox in which some limits are not enforced.
func (h *Host) unenforced(p *spec.Profile, limits []string) {
	h.report.warn("this host does not enforce all limits of " + strings.Join(p.Tools, ", ") + ": " + strings.Join(limits, "; ") +
		" (see agentctl doctor)")
}

// exceeded reports that processes were killed for the memory that they took together.
func (h *Host) exceeded(p *spec.Profile, taken int64) {
	h.report.warn(fmt.Sprintf("the processes of %s took %d MiB of memory together, limits.memory is %d MiB: those of the call that took most were killed",
		strings.Join(p.Tools, ", "), taken>>20, p.Limits.Memory>>20))
}
