package container

import (
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/runner/sandbox"
)

// entryProgram is the first process of every container.
const entryProgram = "agentctl-entry"

// Open returns the runtime of a socket, with its files in the cache of a state
// folder; "" is the socket that the environment names.
func Open(socket, state string) (*Runtime, error) {
	address, err := Address(socket, os.Getenv(AddressEnv))
	if err != nil {
		return nil, err
	}
	entry, err := sandbox.FindProgram(entryProgram)
	if err != nil {
		return nil, fmt.Errorf("start containers: %w", err)
	}
	runtime, err := New(Options{Address: address, StateDir: filepath.Join(state, "cache"), Entry: entry})
	if err != nil {
		return nil, fmt.Errorf("start containers: %w", err)
	}
	return runtime, nil
}
