package kubetest

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"agentctl.dev/agentctl/runner/control/embedded/apitest"
)

var shared Shared

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the cluster:", err)
		code = 1
	}
	os.Exit(code)
}

// TestAClusterTreatsOurKindsAsTheEmbeddedServerDoes is the table that also runs
// against the embedded server.
func TestAClusterTreatsOurKindsAsTheEmbeddedServerDoes(t *testing.T) {
	t.Parallel()
	config, err := shared.Cluster(t).Config()
	if err != nil {
		t.Fatal(err)
	}
	apitest.Run(t, apitest.ServerFunc(func() *rest.Config { return config }))
}

func TestKubectlWorksOnACluster(t *testing.T) {
	t.Parallel()
	Play(t, Stories(t), shared.Cluster(t).Kubeconfig, OnCluster)
}

func TestAClusterDiffersWhereWeSay(t *testing.T) {
	t.Parallel()
	config, err := shared.Cluster(t).Config()
	if err != nil {
		t.Fatal(err)
	}
	apitest.Differ(t, apitest.Cluster, apitest.ServerFunc(func() *rest.Config { return config }))
}
