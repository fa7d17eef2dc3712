// Package kubetest brings a cluster's own API server and kubectl to tests, which hold the embedded server, the controllers and agentctl against them.
//
// The programs are built by .ci/kube from a module of its own; where that has
// not been done, what needs them is skipped.
package kubetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Assets returns the folder of kubectl, kube-apiserver and etcd. The test is
// skipped where they have not been built; in the gate they have been.
func Assets(t testing.TB) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "kube"), "--where").Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	const missing = "missing: kubectl and kube-apiserver; make kube-assets builds them"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// repository is the root of the tree that the test runs in.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "kube")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the test does not run inside the repository: no .ci/kube above it")
		}
		dir = up
	}
}

// Shared is the one cluster of a test binary. The first test that calls it
// starts the cluster, TestMain stops it.
type Shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Cluster returns the cluster; it skips like Assets.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	assets := Assets(t)
	s.once.Do(func() { s.cluster, s.err = Start(assets) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Stop stops the cluster, if a test has started it.
func (s *Shared) Stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}
