package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// TestMain makes the test's own binary the plugin programs under test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "serve-") {
		serve(strings.TrimPrefix(os.Args[1], "serve-"))
		return
	}
	os.Exit(m.Run())
}

// serve serves the fixtures, of which one may break its promise.
func serve(how string) {
	tools := Fixtures()
	replace := func(t sdk.Tool) {
		for i := range tools {
			if tools[i].Name() == t.Name() {
				tools[i] = t
			}
		}
	}
	open := sdk.Schema(json.RawMessage(`{"type":"object"}`))
	switch how {
	case "mute":
		replace(sdk.New("echo", " ", echo))
	case "environment":
		_ = os.Setenv("SMUGGLED", "1")
	case "impatient":
		replace(sdk.New("wait", "Does not wait.", func(context.Context, *sdk.Call, milliIn) (*sdk.Result, error) { return nil, nil }))
	case "silent":
		replace(sdk.New("fail", "Does not fail.", echo, open))
	}
	sdk.Serve(tools...)
}

func self(t testing.TB, how string) Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Command: []string{exe, "serve-" + how}, Env: []string{"DECLARED=yes", "PATH=/usr/bin:/bin"}}
}

// rogueVariable makes the two tests below check another program.
const rogueVariable = "SDKTEST_ROGUE"

func TestSDKServesProperPrograms(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	Run(t, self(t, cmp.Or(os.Getenv(rogueVariable), "fixtures")))
}

func TestSDKKeepsEveryPromise(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "must not leak")
	t.Run("fixtures", func(t *testing.T) { RunFixtures(t, self(t, cmp.Or(os.Getenv(rogueVariable), "fixtures"))) })
}

func TestTheKitNotices(t *testing.T) {
	for how, want := range map[string]string{
		"mute":        "TestSDKServesProperPrograms/schema",
		"environment": "TestSDKKeepsEveryPromise/fixtures/the_environment",
		"impatient":   "TestSDKKeepsEveryPromise/fixtures/a_deadline",
		"silent":      "TestSDKKeepsEveryPromise/fixtures/results",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, self(t, how).Command[0], "-test.run=^"+strings.ReplaceAll(want, "/", "/^")) //nolint:gosec // this very program
			c.Env = append(os.Environ(), rogueVariable+"="+how)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+want) {
				t.Errorf("%v, output:\n%s\nwant a failure of %s", err, out, want)
			}
		})
	}
}

// TestFixturesDoWhatTheySay calls them without a process.
func TestFixturesDoWhatTheySay(t *testing.T) {
	expect := map[string]struct{ args, text, written string }{
		"echo":    {`{"text":"a"}`, "a", ""},
		"fail":    {`{"text":"a"}`, "fixture: a", ""},
		"broken":  {`{}`, "", ""},
		"panics":  {`{"text":"a"}`, "the tool panicked: a", ""},
		"flood":   {`{"bytes":20}`, "end", "0123456789abcde\n0123"},
		"large":   {`{"bytes":3}`, "xxx", ""},
		"wait":    {`{"ms":1}`, "rested", "begun\n"},
		"deaf":    {`{"ms":1}`, "rested", "begun\n"},
		"ticks":   {`{"ms":1}`, "", ""},
		"prints":  {`{"text":"printed by a fixture"}`, "printed", ""},
		"environ": {`{}`, "", ""},
		"stdin":   {`{}`, "", ""},
		"about":   {`{}`, "       0 false", ""},
	}
	for _, tool := range Fixtures() {
		want, ok := expect[tool.Name()]
		if !ok {
			continue // daemon and dies leave something behind
		}
		call := &sdk.Call{}
		res, err := tool.Run(t.Context(), call, json.RawMessage(want.args))
		if (err != nil) != (tool.Name() == "broken") {
			t.Errorf("%s: error %v", tool.Name(), err)
		}
		if err != nil {
			continue
		}
		if want.text != "" && res.Text != want.text || call.Written() != want.written {
			t.Errorf("%s: %+v, wrote %q, want %q and %q", tool.Name(), res, call.Written(), want.text, want.written)
		}
	}
}

func TestTheDaemonOfTheFixtureOutlivesItsParent(t *testing.T) {
	for _, tool := range Fixtures() {
		if tool.Name() != "daemon" {
			continue
		}
		res, err := tool.Run(t.Context(), nil, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(res.Text)
		if err != nil || !runs(pid) {
			t.Errorf("daemon %q does not run: %v", res.Text, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}
