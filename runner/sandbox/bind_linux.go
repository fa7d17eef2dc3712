package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leastBinding is the first Landlock version in which a call can be bound: an older one
// lets no file be renamed into another folder.
const leastBinding = 2

// Unbound is why calls cannot be bound to what they were judged by on this host; "" if they
// can be.
func Unbound() string {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno != 0:
		return "this kernel has no Landlock"
	case abi < leastBinding:
		return fmt.Sprintf("the Landlock of this kernel is too old (ABI %d, at least %d)", abi, leastBinding)
	}
	return ""
}

// binding is whether calls can be bound.
func binding(p probed) Control {
	c := Control{Name: "bind", OK: true, Why: "commands are held to what their calls were judged by"}
	if why := Unbound(); why != "" {
		c.OK, c.Why, c.Hint = false, why+": policies and sandboxes alone hold commands", landlockHint
	} else if p.Landlock > 0 && p.Landlock < 4 {
		c.Why += ", but for connections, which Landlock has from ABI 4"
	}
	return c
}
