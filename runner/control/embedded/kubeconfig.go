package embedded

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"agentctl.dev/agentctl/runner/statedir"
)

// localIdentity is the identity of the kubeconfig in the state folder: the
// owner of the folder.
const localIdentity = "local"

// contextName is what the cluster, user and context of a kubeconfig are called.
const contextName = "agentctl"

// maxKubeconfig bounds what is read of a kubeconfig.
const maxKubeconfig = 1 << 20

// writeKubeconfig replaces the kubeconfig of the folder.
func writeKubeconfig(path, server, token string, ca []byte) error {
	c := clientcmdapi.NewConfig()
	c.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: "default"}
	c.CurrentContext = contextName
	text, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return writePrivate(path, text)
}

// readToken returns the token of a kubeconfig that only its owner may read; ""
// if there is none.
func readToken(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return ""
	}
	text, err := statedir.ReadFile(path, maxKubeconfig)
	if err != nil {
		return ""
	}
	c, err := clientcmd.Load(text)
	if err != nil || c.AuthInfos[contextName] == nil {
		return ""
	}
	return c.AuthInfos[contextName].Token
}
