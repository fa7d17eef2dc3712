package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/host/conformance"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// TestMain makes the test's own binary the programs under test.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		sdk.Serve(sdktest.Fixtures()...)
	case len(os.Args) > 2 && os.Args[1] == "rogue":
		serveRogue(os.Args[2])
	case len(os.Args) > 1 && os.Args[1] == "bare":
		serveBare()
	case len(os.Args) > 1 && os.Args[1] == "goplugin":
		serveGoPlugin()
	default:
		os.Exit(m.Run())
	}
}

func exe(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func options(t *testing.T, script string) conformance.Options {
	t.Helper()
	command := []string{exe(t), "serve"}
	if script != "" {
		command = []string{"/bin/sh", "-c", strings.ReplaceAll(script, "SELF", exe(t)+" serve")}
	}
	env := []string{"PATH=/usr/bin:/bin", "DECLARED=yes"}
	return conformance.Options{Name: "test", Launch: sdktest.Launch(command, env, "/"), Env: env, Workspace: "/w", Parallel: 16}
}

func byName(r *conformance.Report) map[string]conformance.Check {
	m := map[string]conformance.Check{}
	for _, c := range r.Checks {
		m[c.Name] = c
	}
	return m
}

func TestAProgramMadeWithTheSDKKeepsEveryPromise(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	o := options(t, "")
	o.Good = []conformance.Sample{{Tool: "echo", Args: json.RawMessage(`{"text":"a"}`)}}
	o.Slow = []conformance.Sample{{Tool: "wait", Args: json.RawMessage(`{"ms":60000}`)}}
	r := conformance.Run(t.Context(), o)
	for _, c := range r.Checks {
		if c.Outcome != conformance.Passed {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Problem)
		}
		if c.Promise == "" {
			t.Errorf("%s: no promise", c.Name)
		}
	}
	if r.Passed != len(r.Checks) || len(r.Checks) != 19 || r.Tools[0] != "echo" || strings.Contains(fmt.Sprint(r.Tools), "probe_") {
		t.Errorf("%d of %d passed, tools %v", r.Passed, len(r.Checks), r.Tools)
	}
}

func TestAProgramThatCannotBeStartedIsAReport(t *testing.T) {
	t.Parallel()
	r := conformance.Run(t.Context(), options(t, "echo hello; exit 3"))
	if len(r.Checks) != 1 || r.Failed != 1 || !strings.Contains(r.Checks[0].Problem, `"hello"`) || r.Checks[0].Mend == "" {
		t.Errorf("%+v", r)
	}
}

func TestAProgramThatIsNotThereIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	o := options(t, "")
	o.Launch = sdktest.Launch([]string{"/no/such/program"}, nil, "/")
	r := conformance.Run(t.Context(), o)
	if r.Failed != 1 || !strings.Contains(r.Checks[0].Problem, "no such file") || !strings.Contains(r.Checks[0].Mend, "may be executed") {
		t.Errorf("%+v", r)
	}
}

func TestWithoutProbesMuchIsSkippedAndSaid(t *testing.T) {
	t.Parallel()
	r := conformance.Run(t.Context(), options(t, "unset PLUGIN_PROBES; exec SELF"))
	if r.Failed != 0 || r.Passed != 7 || r.Skipped != 9 {
		t.Errorf("%+v", r)
	}
	if c := byName(r)["panic"]; c.Outcome != conformance.Skipped || !strings.Contains(c.Problem, "probe_panic") || c.Mend != "" {
		t.Errorf("%+v", c)
	}
}

func TestAStoppedTestSkipsTheRest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := conformance.Run(ctx, options(t, "")); r.Passed != 0 || r.Failed != 0 || r.Skipped == 0 {
		t.Errorf("%+v", r)
	}
}

func TestSamplesThatFailAreNamed(t *testing.T) {
	t.Parallel()
	o := options(t, "")
	o.Good = []conformance.Sample{{Tool: "fail", Args: json.RawMessage(`{"text":"no luck"}`)}, {Tool: "broken", Args: json.RawMessage(`{}`)}}
	o.Slow = []conformance.Sample{{Tool: "echo", Args: json.RawMessage(`{"text":"quick"}`)}, {Tool: "deaf", Args: json.RawMessage(`{"ms":60000}`)}}
	checks := byName(conformance.Run(t.Context(), o))
	for name, want := range map[string]string{
		"call of fail": "no luck", "call of broken": "not configured",
		"deadline of echo": "no error", "cancel of echo": "cancelled",
		"deadline of deaf": "killed because the call went on", "cancel of deaf": "call went on",
	} {
		if c := checks[name]; c.Outcome != conformance.Failed || !strings.Contains(c.Problem, want) {
			t.Errorf("%s: %s %q, want a failure with %q", name, c.Outcome, c.Problem, want)
		}
	}
}
