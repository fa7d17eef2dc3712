package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/fallback"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/model/openai"
)

func modelServer(t *testing.T, steps ...modeltest.Step) *modeltest.Server {
	t.Helper()
	s, err := modeltest.NewServer(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// openaiModel declares a Model at a server; more is a line of its spec.
func openaiModel(name, url, more string) string {
	return "---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: " + name + "}\nspec:\n  provider: openai\n  model: " + name +
		"-1\n  baseURL: " + url + "\n  retry: {attempts: 2, maxDelay: 20ms}\n  " + more + "\n"
}

func modelAgent(limits, models string) string {
	return "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: first}\n  instructions: Be brief.\n" +
		"  tools: [{name: bash}]\n  limits: " + limits + "\n" + models
}

var echo = modeltest.Answer{
	Text: "I do it.", Calls: []modeltest.Call{{ID: "call_a", Tool: "bash", Args: `{"command":"echo one >> effects"}`}},
	Usage: &modeltest.Usage{Prompt: 1_000_000, Completion: 100_000},
}

func effects(t *testing.T, p place) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.workspace, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

const allow = "---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: free}\nspec:\n  appliesTo: {agentSelector: {}}\n  default: allow\n"

func TestRunTurnsToAFallbackAndBack(t *testing.T) {
	busy := modeltest.Refuse(503, nil, "busy")
	done := modeltest.Answer{Text: "done", Usage: &modeltest.Usage{Prompt: 1_000_000}}.Step()
	first, second := modelServer(t, echo.Step(), busy, busy), modelServer(t, echo.Step(), done)
	p := newPlace(t, modelAgent(`{maxCost: "100"}`, openaiModel("first", first.URL, `pricing: {input: "1", output: "10"}`+"\n  fallbacks: [{name: second}]")+
		openaiModel("second", second.URL, `pricing: {input: "3", output: "30"}`)+allow), nil)
	var retries []message.Retry
	var by []string
	out := p.run(t, func(o *RunOptions) {
		o.InPlace = true
		o.Events = func(e event.Event) {
			switch d := e.Data.(type) {
			case event.ModelRetry:
				retries = append(retries, d.Retry)
			case event.ModelResponse:
				by = append(by, d.Model.Name+" "+d.Model.Model+" "+d.Cost.String())
			}
		}
	})
	want(t, out, reason.Completed)
	if d := cmp.Diff([]string{"first first-1 2.00", "second second-1 6.00", "second second-1 3.00"}, by); d != "" {
		t.Errorf("who answered, at what price (-want +got):\n%s", d)
	}
	res := out.Result()
	if res.Output != "done" || res.Cost.String() != "11.00" || effects(t, p) != 2 {
		t.Errorf("output %q, cost %s, %d effects", res.Output, res.Cost, effects(t, p))
	}
	if len(retries) != 2 || retries[0].Fallback != "" || retries[1].Fallback != "second" || retries[1].Attempt != 2 || retries[1].Attempts != 2 || retries[1].Class != "503" {
		t.Errorf("retries %+v", retries)
	}
	// The first is cooling down in the third step; the second has heard it all.
	if n, m := len(first.Requests()), len(second.Requests()); n != 3 || m != 2 {
		t.Fatalf("%d and %d requests", n, m)
	}
	told := func(b []byte) string {
		return strings.ReplaceAll(string(b), `"model":"second-1"`, `"model":"first-1"`)
	}
	if d := cmp.Diff(string(first.Requests()[1].Body), told(second.Requests()[0].Body)); d != "" {
		t.Errorf("the fallback was told another conversation (-first +second):\n%s", d)
	}
}

func TestChainOfFallbacks(t *testing.T) {
	busy, ok := modeltest.Refuse(503, nil, "busy"), modeltest.Answer{Text: "done", Usage: &modeltest.Usage{Prompt: 10, Completion: 10}}.Step()
	const priced = `pricing: {input: "1", output: "2"}`
	for name, c := range map[string]struct {
		reason               string
		limits               string
		first, second, third modeltest.Step
		ofSecond             string // lines of the second model's spec
		requests             [3]int
		want                 reason.Reason
		says                 string
	}{
		"first":         {reason: "nobody is asked without need", limits: "{}", first: ok, requests: [3]int{1, 0, 0}, want: reason.Completed},
		"third":         {reason: "the fallback of a fallback", limits: "{}", first: busy, second: busy, third: ok, requests: [3]int{2, 2, 1}, want: reason.Completed},
		"no key":        {reason: "a fallback without its key is passed over", limits: "{}", ofSecond: "apiKey: {valueFrom: {env: AGENTCTL_TEST_NO_SUCH_KEY}}", first: busy, third: ok, requests: [3]int{2, 0, 1}, want: reason.Completed},
		"no price":      {reason: "with a limit of the cost, so is one without a price", limits: `{maxCost: "1"}`, ofSecond: "contextWindow: 1000000", first: busy, third: ok, requests: [3]int{2, 0, 1}, want: reason.Completed},
		"no limit":      {reason: "and without one it is not", limits: "{}", ofSecond: "contextWindow: 1000000", first: busy, second: ok, requests: [3]int{2, 1, 0}, want: reason.Completed},
		"dear":          {reason: "the budget is held against the dearest", limits: `{maxCost: "1"}`, ofSecond: `pricing: {input: "1000000", output: "2"}`, first: ok, requests: [3]int{0, 0, 0}, want: reason.BudgetExceeded, says: "limits.maxCost"},
		"all":           {reason: "nobody is left", limits: "{}", first: busy, second: busy, third: busy, requests: [3]int{2, 2, 2}, want: reason.ProviderUnavailable, says: `models "first", "second" and "third" are unavailable`},
		"quota":         {reason: "no second attempt, but another model", limits: "{}", first: modeltest.Refuse(429, nil, `{"error":{"code":"insufficient_quota","message":"pay"}}`), second: ok, requests: [3]int{1, 1, 0}, want: reason.Completed},
		"far away":      {reason: "nobody waits an hour", limits: "{}", first: modeltest.Refuse(429, map[string][]string{"Retry-After": {"3600"}}, "{}"), second: ok, requests: [3]int{1, 1, 0}, want: reason.Completed},
		"key refused":   {reason: "another model does not mend a key", limits: "{}", first: modeltest.Refuse(401, nil, "{}"), requests: [3]int{1, 0, 0}, want: reason.CredentialRejected},
		"wrong request": {reason: "nor a request", limits: "{}", first: modeltest.Refuse(400, nil, "{}"), requests: [3]int{1, 0, 0}, want: reason.ModelError},
		"second's key":  {reason: "nor does a third one", limits: "{}", first: busy, second: modeltest.Refuse(401, nil, "{}"), requests: [3]int{2, 1, 0}, want: reason.CredentialRejected, says: `in place of model "first"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var servers [3]*modeltest.Server
			for i, s := range []modeltest.Step{c.first, c.second, c.third} {
				servers[i] = modelServer(t, s, s)
			}
			if c.ofSecond == "" {
				c.ofSecond = priced
			} else if strings.HasPrefix(c.ofSecond, "apiKey") {
				c.ofSecond += "\n  " + priced
			}
			p := newPlace(t, modelAgent(c.limits, openaiModel("first", servers[0].URL, priced+"\n  fallbacks: [{name: second}]")+
				openaiModel("second", servers[1].URL, c.ofSecond+"\n  fallbacks: [{name: third}]")+openaiModel("third", servers[2].URL, priced)), nil)
			out := p.run(t)
			want(t, out, c.want)
			for i, s := range servers {
				if n := len(s.Requests()); n != c.requests[i] {
					t.Errorf("%s: %d requests to model %d, want %d", c.reason, n, i+1, c.requests[i])
				}
			}
			if m := out.Run.Finished.Message; !strings.Contains(m, c.says) {
				t.Errorf("%s: %q does not say %q", c.reason, m, c.says)
			}
		})
	}
}

// The suite of the providers, through a conversation with fallbacks.
func TestConformanceOfFallbacks(t *testing.T) {
	modeltest.Talks(t, modeltest.Chat, func(t testing.TB, s modeltest.Setup) model.Conversation {
		t.Helper()
		// A clock that hurries: the suite asks again at once.
		now := time.Now()
		hurry := func() time.Time { now = now.Add(24 * time.Hour); return now }
		c, err := fallback.New([]fallback.Choice{{Name: "fast", Open: func() (model.Conversation, error) {
			return openai.New(httpapi.Config{
				Name: "fast", Model: "test-model", BaseURL: s.BaseURL, Retry: s.Retry, Patience: model.Patience{FirstByte: s.FirstByte, Idle: s.Idle},
				APIKey: func(context.Context) (string, error) { return s.APIKey, nil },
			}, s.Prompt)
		}}}, fallback.Options{Now: hurry})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
}
