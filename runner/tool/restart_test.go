package tool

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
)

// served returns the server of one of the fixtures, in a pool made by o.
func served(t *testing.T, pool *Pool, function string) (Server, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := of(Definition{Name: "my_" + function, Spec: v1alpha1.ToolSpec{Source: v1alpha1.ToolSource{
		Plugin: &v1alpha1.PluginSource{Command: []string{exe, "serve"}, Tool: function},
	}}})
	return pool.Serve(t.Context(), &d, Outside{})
}

// fixturePool is a pool in a folder of its own on a site without sandboxes.
func fixturePool(t *testing.T, o PoolOptions) *Pool {
	t.Helper()
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	o.Site, o.Dir = testSite(launcher), t.TempDir()
	pool := NewPool(o)
	t.Cleanup(func() {
		_ = pool.Close()
		_ = launcher.Close()
	})
	return pool
}

func TestAProgramThatDiesIsStartedAgainTwiceAndLater(t *testing.T) {
	var waited []time.Duration
	pool := fixturePool(t, PoolOptions{After: func(d time.Duration) <-chan time.Time {
		waited = append(waited, d)
		return atOnce(d)
	}})
	die := func() (Reply, error) {
		server, err := served(t, pool, "dies")
		if err != nil {
			return Reply{}, err
		}
		return server.Call(t.Context(), host.CallRequest{Tool: "dies", Args: json.RawMessage(`{"text":"out of luck"}`), Timeout: time.Minute}, func(string) {})
	}
	for range maxStarts - 1 {
		if reply, err := die(); err != nil || !reply.Failed || !strings.Contains(reply.Output, "out of luck") {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	if _, err := die(); err == nil || !strings.Contains(err.Error(), "died 3 times") {
		t.Errorf("the last time: %v", err)
	}
	if diff := cmp.Diff([]time.Duration{100 * time.Millisecond, 400 * time.Millisecond}, waited); diff != "" {
		t.Errorf("waits before a start (-want +got):\n%s", diff)
	}
}

func TestAWaitForAnotherStartEndsWithItsCall(t *testing.T) {
	pool := fixturePool(t, PoolOptions{After: func(time.Duration) <-chan time.Time { return nil }})
	server, err := served(t, pool, "dies")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Call(t.Context(), host.CallRequest{Tool: "dies", Args: json.RawMessage(`{"text":""}`), Timeout: time.Minute}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := of(Definition{Name: "my_echo", Spec: v1alpha1.ToolSpec{Source: v1alpha1.ToolSource{Plugin: &v1alpha1.PluginSource{Command: []string{exe, "serve"}, Tool: "echo"}}}})
	if _, err := pool.Serve(ctx, &d, Outside{}); err == nil {
		t.Error("a cancelled call got a server")
	}
}

func TestAToolAsksAndReadsThroughThePool(t *testing.T) {
	pool := fixturePool(t, PoolOptions{
		Ask: func(_ context.Context, call string, q host.Question) (string, error) { return call + " " + q.Text, nil },
		History: func(context.Context, int) ([]host.Message, error) {
			return []host.Message{{Role: "user", Text: "begin"}}, nil
		},
	})
	for function, c := range map[string]struct{ args, want string }{
		"asks":    {`{"question":"who?"}`, "c1 who?"},
		"history": {`{}`, "user 5 begin\n"},
	} {
		server, err := served(t, pool, function)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := server.Call(t.Context(), host.CallRequest{Tool: function, ID: "c1", Args: json.RawMessage(c.args), Timeout: time.Minute}, func(string) {})
		if err != nil || reply.Failed || !strings.HasSuffix(reply.Output, c.want) {
			t.Errorf("%s: %+v, %v, want %q", function, reply, err, c.want)
		}
	}
}
