package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded/apitest"
)

// childEnv is the state folder of a test binary that is to be a server.
const childEnv = "EMBEDDED_TEST_STATE"

func TestMain(m *testing.M) {
	if state := os.Getenv(childEnv); state != "" {
		os.Exit(child(state))
	}
	if path := os.Getenv(connectEnv); path != "" {
		os.Exit(connect(path))
	}
	code := m.Run()
	if s := shared.server; s != nil {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shared server:", err)
			code = 1
		}
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is the one server that a process can have.
var shared struct {
	once   sync.Once
	dir    string
	server *Server
	log    controltest.Log
	err    error
}

func sharedServer(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "agentd-test-"); shared.err != nil {
			return
		}
		shared.server, shared.err = Start(context.Background(), Options{
			State: shared.dir, Log: slog.New(slog.NewTextHandler(&shared.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			headerTimeout: shortHeaders, bodyTimeout: shortHeaders, Version: "test 1.0",
		})
		if shared.err == nil {
			shared.server.Handle(http.HandlerFunc(echo))
		}
	})
	if shared.err != nil {
		t.Fatalf("start the shared server: %v\n%s", shared.err, shared.log.String())
	}
	return shared.server
}

// TestTreatsOurKindsAsAClusterDoes is the table that also runs against a
// cluster's API server.
func TestTreatsOurKindsAsAClusterDoes(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	apitest.Run(t, apitest.ServerFunc(func() *rest.Config { return s.Loopback() }))
}

func TestDiffersFromAClusterWhereWeSay(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	apitest.Differ(t, apitest.Embedded, apitest.ServerFunc(func() *rest.Config { return s.Loopback() }))
}

// stateDir is a folder with a short path, as unix sockets want it.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func control(state, name string) string { return filepath.Join(state, controlDir, name) }
