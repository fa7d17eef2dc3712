package embedded

import (
	"testing"

	"agentctl.dev/agentctl/runner/control/embedded/kubetest"
)

func TestKubectlWorksAsOnACluster(t *testing.T) {
	t.Parallel()
	kubetest.Assets(t)
	kubetest.Play(t, kubetest.Stories(t), sharedServer(t).Kubeconfig(), kubetest.OnEmbedded)
}
