package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Target is the server that stories are played against. A difference between
// the two is marked in the stories, as a condition of a line: [embedded] or
// [cluster].
type Target string

// The servers.
const (
	OnEmbedded Target = "embedded"
	OnCluster  Target = "cluster"
)

// Play plays the stories of a folder with kubectl as the admin of a kubeconfig.
// Each has a namespace of its own, NS, and kubectl uses it when none is named.
// The name begins with the story's.
func Play(t *testing.T, folder, kubeconfig string, target Target) {
	t.Helper()
	assets := Assets(t)
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			namespace := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-") + "-" + rand.String(5)
			env.Setenv("NS", namespace)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Setenv("PATH", assets+string(os.PathListSeparator)+env.Getenv("PATH"))
			if err := within(kubeconfig, env.Getenv("KUBECONFIG"), namespace); err != nil {
				return err
			}
			if target == OnEmbedded {
				return nil // where a namespace is just a name
			}
			create := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "create", "namespace", namespace)
			create.Env = env.Vars
			if out, err := create.CombinedOutput(); err != nil {
				return fmt.Errorf("create namespace %s: %w\n%s", namespace, err, out)
			}
			return nil
		},
		Condition: func(c string) (bool, error) {
			switch Target(c) {
			case OnEmbedded, OnCluster:
				return Target(c) == target, nil
			}
			return false, fmt.Errorf("unknown condition %q", c)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// Stories is the folder of stories that every server has to pass.
func Stories(t testing.TB) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "runner", "control", "embedded", "kubetest", "testdata")
}

// within rewrites a kubeconfig, so that its contexts are in a namespace.
func within(from, to, namespace string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	// Paths in it are relative to where it came from.
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, to)
}

// exits runs a program that has to end with a code: exits 1 kubectl diff -f x.yaml.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		if got = strings.TrimPrefix(err.Error(), "exit status "); got == err.Error() {
			ts.Fatalf("run %s: %v", args[1], err)
		}
	}
	if got != args[0] {
		ts.Fatalf("it exits with %s, want %s", got, args[0])
	}
}
