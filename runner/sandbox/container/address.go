package container

import (
	"path/filepath"

	"agentctl.dev/agentctl/api/reason"
)

// DefaultAddress is where a distribution's containerd listens.
const DefaultAddress = "/run/containerd/containerd.sock"

// AddressEnv is the variable that names another socket, as ctr reads it.
const AddressEnv = "CONTAINERD_ADDRESS"

// Address returns the socket: the flag, else the variable's value, else
// DefaultAddress. Relative paths are refused, because the daemon and this
// process may have different working folders.
func Address(flag, env string) (string, error) {
	address, from := flag, "--containerd-address"
	if address == "" {
		address, from = env, AddressEnv
	}
	if address == "" {
		return DefaultAddress, nil
	}
	if !filepath.IsAbs(address) {
		return "", reason.New(reason.IsolationUnavailable, "%s is %q, which is not an absolute path", from, address).
			WithHint("name the socket in full, for example %s", DefaultAddress)
	}
	return filepath.Clean(address), nil
}
