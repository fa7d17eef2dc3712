package plan

import (
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// binds reports whether calls of a tool may be bound to what they were judged by: the shipped
// tools that run commands do it themselves.
func binds(d *tool.Definition) bool {
	return d.Spec.Isolation.Bind != v1alpha1.BindOff && !d.Contained() && (d.Shipped == "bash" || d.Shipped == "workspace_shell")
}

// Unbound returns a warning if calls should be bound on a host that cannot do it; why says
// what it lacks, "" nothing.
func Unbound(tools []tool.Definition, why string) (warnings []string) {
	for i := range tools {
		if d := &tools[i]; why != "" && binds(d) {
			return []string{fmt.Sprintf("calls of %s are not held to what they were judged by: %s (spec.isolation.bind); policies judge them all the same", d.Name, why)}
		}
	}
	return nil
}

// Unrecorded returns a warning if what bound calls do should be recorded on a host that
// cannot do it; why says what it lacks, "" nothing.
func Unrecorded(tools []tool.Definition, why string) (warnings []string) {
	for i := range tools {
		if d := &tools[i]; why != "" && binds(d) {
			return []string{fmt.Sprintf("what calls of %s do is not recorded: %s; calls that are bound exceed their facts no more than before, but their results do not name what was denied", d.Name, why)}
		}
	}
	return nil
}
