package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/storytest"
)

// TestRealCodingAgents plays the stories in testdata/coders with the programs of opencode,
// codex and claude, which are found in $CODERS: .ci/coders installs them there. Their model
// is a server of the story.
func TestRealCodingAgents(t *testing.T) {
	programs := os.Getenv("CODERS")
	if programs == "" {
		t.Skip("CODERS names no folder with the programs: .ci/full coders runs this")
	}
	tools := buildTools(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/coders", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("AGENTCTL_STATE", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("AGENTCTL_LIBEXEC", tools)
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("NO_COLOR", "")
			env.Setenv("CODERS", programs)
			return os.Mkdir(filepath.Join(env.WorkDir, ".home"), 0o700)
		},
		Cmds: storytest.Commands(),
	})
}
