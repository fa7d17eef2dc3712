package main

import (
	"os/exec"
	"testing"
)

// TestStubsReplaceTheirProviders fails when a provider has a function that its stub
// lacks: what the provider costs could then not be measured.
func TestStubsReplaceTheirProviders(t *testing.T) {
	const root = "../.."
	for _, name := range remoteProviders() {
		overlay, err := overlayWithout(name, root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./runner")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without %s: %v\n%s", name, err, out)
		}
	}
}
