package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host/conformance"
	"agentctl.dev/agentctl/plugins/sdk"
)

type none struct{}

// rogues break one promise each.
func rogues() map[string][]sdk.Tool {
	probe := func(name string, f func(ctx context.Context, call *sdk.Call, in json.RawMessage) (*sdk.Result, error)) []sdk.Tool {
		return []sdk.Tool{
			sdk.New("fine", "Fine.", func(context.Context, *sdk.Call, none) (*sdk.Result, error) { return nil, nil }),
			sdk.New(name, "A probe.", func(ctx context.Context, call *sdk.Call, in map[string]any) (*sdk.Result, error) {
				b, _ := json.Marshal(in)
				return f(ctx, call, b)
			}, sdk.Schema(json.RawMessage(`{"type":"object"}`))),
		}
	}
	says := func(text string) func(context.Context, *sdk.Call, json.RawMessage) (*sdk.Result, error) {
		return func(context.Context, *sdk.Call, json.RawMessage) (*sdk.Result, error) {
			return &sdk.Result{Text: text}, nil
		}
	}
	deaf := func(context.Context, *sdk.Call, json.RawMessage) (*sdk.Result, error) {
		<-time.After(6 * time.Second)
		return nil, nil
	}
	return map[string][]sdk.Tool{
		"schema":         {sdk.New("mute", " ", func(context.Context, *sdk.Call, none) (*sdk.Result, error) { return nil, nil })},
		"handshake":      {sdk.New("probe_only", "d", func(context.Context, *sdk.Call, none) (*sdk.Result, error) { return nil, nil })},
		"parallel calls": probe("probe_wait", says("rested")),
		"deadline":       probe("probe_wait", deaf),
		"cancel":         probe("probe_wait", deaf),
		"10 MB output":   probe("probe_flood", says("little")),
		"panic": probe("probe_panic", func(context.Context, *sdk.Call, json.RawMessage) (*sdk.Result, error) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			return nil, nil
		}),
		"stdout pollution": probe("probe_print", says("no")),
		"stdin":            probe("probe_stdin", says("7")),
		"leaked environment": probe("probe_environ", func(context.Context, *sdk.Call, json.RawMessage) (*sdk.Result, error) {
			b, err := json.Marshal(append(os.Environ(), "SMUGGLED=1", "PLUGIN_UNIX_SOCKET_DIR=/x"))
			return &sdk.Result{Text: string(b)}, err
		}),
		"orphan processes": probe("probe_spawn", func(ctx context.Context, _ *sdk.Call, _ json.RawMessage) (*sdk.Result, error) {
			out, err := exec.CommandContext(ctx, "/bin/sh", "-c", `setsid sh -c 'echo $$; exec sleep 60 </dev/null >/dev/null 2>&1' &`).Output()
			return &sdk.Result{Text: strings.TrimSpace(string(out))}, err
		}),
		"question":      probe("probe_ask", says("you")),
		"large request": probe("probe_echo", says("little")),
		"shutdown":      nil, // see serveRogue
	}
}

func serveRogue(how string) {
	_ = os.Unsetenv("PLUGIN_PROBES") // it brings its own
	tools := rogues()[how]
	if how == "shutdown" {
		tools = []sdk.Tool{sdk.New("fine", "Fine.", func(context.Context, *sdk.Call, none) (*sdk.Result, error) { return nil, nil })}
		go func() { // the SDK listens to SIGTERM only once it serves
			for range time.Tick(time.Millisecond) {
				signal.Ignore(syscall.SIGTERM)
			}
		}()
	}
	sdk.Serve(tools...)
}

func TestTheKitNoticesEachBrokenPromise(t *testing.T) {
	t.Parallel()
	for how := range rogues() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := byName(conformance.Run(t.Context(), options(t, fmt.Sprintf("exec %s rogue '%s'", exe(t), how))))[how]
			if c.Outcome != conformance.Failed || c.Problem == "" || c.Mend == "" {
				t.Errorf("%+v, want a failure and how to fix it", c)
			}
			t.Log(c.Problem)
		})
	}
}

// What a plain server forgets: gRPC's own limit, a result for an unknown tool, a
// look at the arguments.
func TestTheKitNoticesAServerWithoutTheSDK(t *testing.T) {
	t.Parallel()
	checks := byName(conformance.Run(t.Context(), options(t, exe(t)+" bare")))
	for _, name := range []string{"unknown tool", "bad arguments", "large request"} {
		if c := checks[name]; c.Outcome != conformance.Failed {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
