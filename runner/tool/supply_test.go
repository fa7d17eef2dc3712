package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/secret"
)

const supplyToken = "tok-4711-0815-canary"

// supplying is a registry with a tool that supplies API_TOKEN and SESSION, one that is given
// API_TOKEN, and one that declares nothing. All are answered by serve.
func supplying(t *testing.T, serve serverFunc) *Registry {
	t.Helper()
	login, query, other := plain("login"), plain("query"), plain("other")
	login.Spec.Supplies = []string{"API_TOKEN", "SESSION", "LD_PRELOAD"}
	query.Spec.Env = []v1alpha1.EnvVar{{Name: "API_TOKEN", SuppliedBy: &v1alpha1.Reference{Name: "login"}}}
	r := registry(t, serve, login, query, other)
	r.Redactor = secret.NewLearner()
	r.Keep = func(value string) { r.Redactor.Keep(secret.NewValue(value)) }
	return r
}

func plain(name string) Definition {
	d := Definition{Name: name, Object: name, Parameters: json.RawMessage(`{"type":"object"}`)}
	d.Spec.Limits = v1alpha1.ToolLimits{OutputBytes: 51200, OutputLines: 2000}
	d.Spec.Limits.Timeout.Duration = time.Minute
	return d
}

func resultOf(t *testing.T, r *Registry, name string) *message.ToolResult {
	t.Helper()
	result, err := r.Run(t.Context(), message.ToolCall{ID: "call-1", Message: "m", Tool: name, Args: json.RawMessage(`{"user":"someone-with-a-long-name"}`)}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestASuppliedVariableReachesOnlyTheToolThatDeclaresIt(t *testing.T) {
	given := map[string][]host.Variable{}
	r := supplying(t, func(_ context.Context, req host.CallRequest, _ func(string)) (Reply, error) {
		given[req.Tool] = req.Variables
		if req.Tool != "login" {
			return Reply{Output: "ok"}, nil
		}
		return Reply{Output: "welcome", Variables: []host.Variable{{Name: "API_TOKEN", Value: supplyToken}}}, nil
	})
	before := resultOf(t, r, "query")
	if _, ran := given["query"]; ran || !before.Failed() || !strings.Contains(before.Text, "Nothing was run: query needs the variable API_TOKEN, which a call of login supplies") {
		t.Errorf("before it is supplied: ran %v: %+v", ran, before)
	}
	if got := resultOf(t, r, "login"); got.Failed() {
		t.Fatalf("%+v", got)
	}
	for _, name := range []string{"query", "other", "login"} {
		if got := resultOf(t, r, name); got.Failed() {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	if q := given["query"]; len(q) != 1 || q[0].Name != "API_TOKEN" || q[0].Value != supplyToken {
		t.Errorf("query was given %d variables: %v", len(q), q)
	}
	if len(given["other"])+len(given["login"]) > 0 {
		t.Errorf("tools that declare nothing were given %v and %v", given["other"], given["login"])
	}
}

func TestASuppliedValueIsInNothingThatIsRecorded(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("Bearer " + supplyToken))
	blobs := memory{}
	r := supplying(t, func(_ context.Context, req host.CallRequest, _ func(string)) (Reply, error) {
		reply := Reply{
			Output: strings.Repeat("x\n", 40<<10) + "token " + supplyToken + " " + encoded, Title: "got " + supplyToken, Writes: true,
			Metadata:    json.RawMessage(fmt.Sprintf(`{"token":%q,"header":%q}`, supplyToken, encoded)),
			Attachments: []Attachment{{Name: supplyToken, Content: []byte(supplyToken)}},
			Parts:       []message.DataPart{{Type: req.Tool + "/x", Data: json.RawMessage(fmt.Sprintf(`{"token":%q}`, supplyToken))}},
		}
		if req.Tool == "login" {
			reply.Variables = []host.Variable{{Name: "API_TOKEN", Value: supplyToken}}
		}
		return reply, nil
	})
	r.Blobs = blobs
	for _, name := range []string{"login", "query"} {
		b, err := json.Marshal(resultOf(t, r, name))
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"the result": string(b), "the blob of the whole output": string(blobs["sha256:1"])} {
			if text == "" || strings.Contains(text, "canary") || strings.Contains(text, encoded[12:28]) || !strings.Contains(text, "***") {
				t.Errorf("%s: %s: %.500s", name, what, text[max(0, len(text)-500):])
			}
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", Reply{Variables: []host.Variable{{Name: "A", Value: supplyToken}}}, host.CallRequest{Variables: []host.Variable{{Name: "A", Value: supplyToken}}},
		host.Variable{Name: "A", Value: supplyToken}); strings.Contains(text, "canary") {
		t.Errorf("a log shows the value: %s", text)
	}
}

// A result is refused as a whole, and what it sent is hidden where that does no harm.
func TestVariablesAreRefused(t *testing.T) {
	many := make([]host.Variable, host.MaxVariables+1)
	for i := range many {
		many[i] = host.Variable{Name: "SESSION", Value: fmt.Sprintf("many-values-%d-here", i)}
	}
	for _, c := range []struct {
		reason string
		sent   []host.Variable
		want   string
	}{
		{"a name that the Tool does not list", []host.Variable{{Name: "SECOND", Value: supplyToken}}, `spec.supplies of the Tool does not list "SECOND"`},
		{"a listed name that loads programs", []host.Variable{{Name: "LD_PRELOAD", Value: "/tmp/hostile-library-1.so"}}, "LD_PRELOAD can decide which programs"},
		{"a good one beside a bad one", []host.Variable{{Name: "API_TOKEN", Value: supplyToken}, {Name: "PATH", Value: "/tmp/hostile-folder-1"}}, `does not list "PATH"`},
		{"twice the same name", []host.Variable{{Name: "API_TOKEN", Value: supplyToken}, {Name: "API_TOKEN", Value: supplyToken + "x"}}, "API_TOKEN is supplied twice"},
		{"too short to be hidden", []host.Variable{{Name: "API_TOKEN", Value: "abc-123"}}, "has 7 characters: 16 to 16384 can be hidden"},
		{"empty", []host.Variable{{Name: "API_TOKEN"}}, "has 0 characters"},
		{"too long", []host.Variable{{Name: "API_TOKEN", Value: strings.Repeat("ab1-", 5000)}}, "has 20000 characters"},
		{"a line break, which could end a header", []host.Variable{{Name: "API_TOKEN", Value: supplyToken + "\nHost: x"}}, "other than printable ASCII"},
		{"structure of the journal", []host.Variable{{Name: "API_TOKEN", Value: `","type":"tool.result1"`}}, "other than printable ASCII"},
		{"the name of a field", []host.Variable{{Name: "API_TOKEN", Value: "structuredContent"}}, "letters only"},
		{"an argument of the call, which the journal has", []host.Variable{{Name: "API_TOKEN", Value: `someone-with-a-long-name`}}, "is no secret: the call was given it"},
		{"too many", many, "at most 16"},
	} {
		ran := false
		r := supplying(t, func(_ context.Context, req host.CallRequest, _ func(string)) (Reply, error) {
			ran = ran || req.Tool == "query"
			return Reply{Output: "welcome", Variables: c.sent}, nil
		})
		got := resultOf(t, r, "login")
		if !got.Failed() || !strings.Contains(got.Text, c.want) || !strings.Contains(got.Text, "welcome") {
			t.Errorf("%s: %+v\nwant %s", c.reason, got.Text, c.want)
		}
		for _, v := range c.sent {
			if len(v.Value) > 10 && len(v.Value) < 1000 && v.Value != "someone-with-a-long-name" && strings.Contains(got.Text, v.Value) {
				t.Errorf("%s: the error shows the value: %s", c.reason, got.Text)
			}
		}
		if q := resultOf(t, r, "query"); ran || !q.Failed() {
			t.Errorf("%s: the other tool ran: %+v", c.reason, q)
		}
	}
}

func TestAToolThatDeclaresNoVariablesSuppliesNone(t *testing.T) {
	r := supplying(t, func(context.Context, host.CallRequest, func(string)) (Reply, error) {
		return Reply{Variables: []host.Variable{{Name: "API_TOKEN", Value: supplyToken}}}, nil
	})
	if got := resultOf(t, r, "other"); !got.Failed() || !strings.Contains(got.Text, "spec.supplies of the Tool lists no variables") {
		t.Errorf("%+v", got)
	}
	if got := resultOf(t, r, "query"); !got.Failed() {
		t.Errorf("another tool took the place of login: %+v", got)
	}
}

func TestAFailedCallSuppliesNothingButHidesWhatItSent(t *testing.T) {
	r := supplying(t, func(context.Context, host.CallRequest, func(string)) (Reply, error) {
		return Reply{Output: "no: " + supplyToken, Failed: true, Code: message.CodeTool, Variables: []host.Variable{{Name: "API_TOKEN", Value: supplyToken}}}, nil
	})
	if got := resultOf(t, r, "login"); got.Text != "no: ***" {
		t.Errorf("%+v", got)
	}
	if got := resultOf(t, r, "query"); !strings.Contains(got.Text, "Nothing was run") {
		t.Errorf("%+v", got)
	}
}

func TestSuppliedValuesAreBoundedAndNoneIsForgotten(t *testing.T) {
	n := 0
	r := supplying(t, func(context.Context, host.CallRequest, func(string)) (Reply, error) {
		n++
		return Reply{Variables: []host.Variable{{Name: "API_TOKEN", Value: fmt.Sprintf("the-value-of-call-%03d", n)}}}, nil
	})
	for i := range maxSupplied {
		if got := resultOf(t, r, "login"); got.Failed() {
			t.Fatalf("value %d: %+v", i, got)
		}
	}
	if got := resultOf(t, r, "login"); !got.Failed() || !strings.Contains(got.Text, "at most 64 different values") {
		t.Errorf("%+v", got)
	}
	if got := r.Redactor.String("the-value-of-call-001 the-value-of-call-064"); got != "*** ***" {
		t.Errorf("an early value is shown again: %s", got)
	}
}

func TestNamesThatNoResultMaySupply(t *testing.T) {
	for name, ok := range map[string]bool{
		"API_TOKEN": true, "SESSION_1": true, "_x": true, "KEY": true, "GITHUB_TOKEN": true, "AWS_SESSION_TOKEN": true,
		"LD_LIBRARY_PATH": false, "PATH": false, "Path": false, "HOME": false, "BASH_ENV": false, "BASH_FUNC_ls": false, "ENV": false, "IFS": false,
		"GIT_SSH": false, "GIT_CONFIG_COUNT": false, "AGENTCTL_RUN": false, "http_proxy": false, "NODE_OPTIONS": false, "PYTHONPATH": false, "PS4": false,
		"": false, "1A": false, "A-B": false, "A=B": false, "A\x00": false, "Ä": false, strings.Repeat("A", 65): false,
	} {
		if err := Suppliable(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
