package control

import (
	"testing"

	"agentctl.dev/agentctl/runner/control/embedded/kubetest"
)

func TestKubectlSeesWhatTheControllersDo(t *testing.T) {
	t.Parallel()
	kubetest.Assets(t)
	kubetest.Play(t, "testdata/kubectl", sharedPlane(t).server.Kubeconfig(), kubetest.OnEmbedded)
}
