package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/control/embedded/kubetest"
	"agentctl.dev/agentctl/runner/storytest"
)

// TestCluster plays the stories in testdata/cluster against a cluster's API
// server, which knows nothing of us but the definitions of our kinds.
func TestCluster(t *testing.T) {
	cluster, err := kubetest.Start(kubetest.Assets(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("stories", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/cluster",
			RequireExplicitExec: true,
			RequireUniqueNames:  true,
			UpdateScripts:       *update,
			Setup: func(env *testscript.Env) error {
				kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
				if err != nil {
					return err
				}
				env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
				env.Setenv("AGENTCTL_STATE", filepath.Join(env.WorkDir, "state"))
				env.Setenv("AGENTCTL_LIBEXEC", env.WorkDir) // there is no agentd to start
				env.Setenv("HOME", env.WorkDir)
				env.Setenv("NO_COLOR", "1")
				env.Setenv("GORACE", os.Getenv("GORACE"))
				env.Setenv("PATH", kubetest.Assets(t)+string(os.PathListSeparator)+env.Getenv("PATH"))
				return os.WriteFile(env.Getenv("KUBECONFIG"), kubeconfig, 0o600)
			},
			Cmds: storytest.Commands(),
		})
	})
}
