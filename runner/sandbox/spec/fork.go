package spec

import (
	"errors"
	"fmt"
)

// ForkArg makes the helper start another helper in namespaces of its own, as a
// child of the runner, and end; a Fork as JSON follows. A Reply comes over
// ControlFD, with an Errno or with the PID as it is outside. The runner does
// not fork into the namespaces itself: the fork would copy all its page tables
// and block the runner meanwhile.
const ForkArg = "fork"

// maxRanges is the kernel's bound of lines in a map.
const maxRanges = 340

// Fork has the namespaces for the new helper.
type Fork struct {
	Version int     `json:"version"`
	Network Network `json:"network"`
	// Users and Groups exist inside, under their own numbers.
	Users  []Range `json:"users"`
	Groups []Range `json:"groups"`
}

// Range are numbers of users or groups.
type Range struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Check validates the message.
func (m *Fork) Check() error {
	if m.Version != Version {
		return fmt.Errorf("the runner speaks version %d, this helper %d: both must come from one build", m.Version, Version)
	}
	if err := (&Profile{Network: m.Network}).Check(); err != nil {
		return err
	}
	for _, list := range [][]Range{m.Users, m.Groups} {
		if len(list) == 0 || len(list) > maxRanges {
			return fmt.Errorf("%d ranges of users or groups", len(list))
		}
		for _, r := range list {
			if r.First < 0 || r.Count < 1 {
				return errors.New("a range of users or groups is empty or negative")
			}
		}
	}
	return nil
}

// DecodeFork reads and checks what follows ForkArg.
func DecodeFork(b []byte) (*Fork, error) {
	var m Fork
	if err := decode(b, &m); err != nil {
		return nil, fmt.Errorf("read which namespaces: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("the namespaces are wrong: %w", err)
	}
	return &m, nil
}
