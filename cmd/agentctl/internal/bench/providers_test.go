package main

import (
	"os/exec"
	"testing"
)

// TestStubsStandForTheirProviders: a function that is new in a provider has to
// be in its stub, or nobody can measure any more what the provider costs.
func TestStubsStandForTheirProviders(t *testing.T) {
	t.Chdir("../../../..")
	for _, p := range providers() {
		overlay, err := p.absent(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./runner").CombinedOutput(); err != nil {
			t.Errorf("without %s: %v\n%s", p.name, err, out)
		}
	}
}
