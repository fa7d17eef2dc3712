package runner

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// faultyCase is a run against a server that fails in one way first.
type faultyCase struct {
	// faults come before the answers: two calls that each leave a line, then text.
	faults []modeltest.Step
	// calls replaces the answer with the calls.
	calls *modeltest.Step
	// waits are the least times between the requests, as far as they are given.
	waits []time.Duration
	// requests, effects and the rest of it: what there must be in the end.
	requests, effects int
	want              reason.Reason
	// says is part of the message or its hint.
	says string
	// limits and retry are the agent's limits and the model's retry.
	limits, retry string
}

// endpoints say how a Model names each wire format, and what it calls an answer
// that was cut.
var endpoints = map[modeltest.Wire]struct{ spec, cut string }{
	modeltest.Chat:      {"provider: openai", "length"},
	modeltest.Responses: {"provider: openai, api: responses", "max_output_tokens"},
	modeltest.Anthropic: {"provider: anthropic", "max_tokens"},
	modeltest.Gemini:    {"provider: gemini", ""},
}

// twice asks for two commands.
var twice = modeltest.Answer{
	Text: "I write two lines.",
	Calls: []modeltest.Call{
		{ID: "call_a", Tool: "bash", Args: `{"command":"echo one >> effects"}`},
		{ID: "call_b", Tool: "bash", Args: `{"command":"echo two >> effects"}`},
	},
	Usage: &modeltest.Usage{Prompt: 10, Completion: 10},
}

func faultyCases(wire modeltest.Wire) map[string]faultyCase {
	const backoff = 900 * time.Millisecond // a second less a tenth
	after := func(status int, k, v string) []modeltest.Step {
		return []modeltest.Step{modeltest.Refuse(status, http.Header{k: {v}}, "{}")}
	}
	refuse := func(status int, body string) []modeltest.Step {
		return []modeltest.Step{modeltest.Refuse(status, nil, body)}
	}
	// The date has whole seconds: what is left of this one is not known.
	soon := time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
	well := func(c faultyCase) faultyCase {
		c.requests, c.effects, c.want = len(c.faults)+2, 2, reason.Completed
		return c
	}
	ends := func(r reason.Reason, says string, faults ...modeltest.Step) faultyCase {
		return faultyCase{faults: faults, requests: len(faults), want: r, says: says}
	}
	cases := map[string]faultyCase{
		"no fault":                well(faultyCase{}),
		"429 milliseconds":        well(faultyCase{faults: after(429, "Retry-After-Ms", "150"), waits: []time.Duration{150 * time.Millisecond}}),
		"429 seconds":             well(faultyCase{faults: after(429, "Retry-After", "1"), waits: []time.Duration{time.Second}}),
		"429 part of a second":    well(faultyCase{faults: after(429, "Retry-After", "0.2"), waits: []time.Duration{200 * time.Millisecond}}),
		"429 date":                well(faultyCase{faults: after(429, "Retry-After", soon)}),
		"429 without a header":    well(faultyCase{faults: refuse(429, "{}"), waits: []time.Duration{backoff}}),
		"503 with a header":       well(faultyCase{faults: after(503, "Retry-After", "0.1"), waits: []time.Duration{100 * time.Millisecond}}),
		"500":                     well(faultyCase{faults: refuse(500, "oops"), waits: []time.Duration{backoff}}),
		"overloaded under 200":    well(faultyCase{faults: refuse(200, wire.Fault(503, "overloaded, try again", "")), waits: []time.Duration{backoff}}),
		"429 an hour":             ends(reason.ProviderUnavailable, "retry.maxDelay", after(429, "Retry-After", "3600")...),
		"429 for ever":            ends(reason.ProviderUnavailable, "retry.maxDelay", after(429, "Retry-After", "99999999999999999999")...),
		"quota":                   ends(reason.ProviderUnavailable, "billing", modeltest.FaultNamed(wire, "quota")),
		"401":                     ends(reason.CredentialRejected, "key", refuse(401, "{}")...),
		"403":                     ends(reason.CredentialRejected, "key", refuse(403, "{}")...),
		"400":                     ends(reason.ModelError, "what?", refuse(400, wire.Fault(400, "what?", ""))...),
		"page":                    ends(reason.ModelError, "baseURL", modeltest.Page()),
		"garbage":                 ends(reason.ModelError, "{]", modeltest.Events("data: {]\n\n")),
		"filtered":                ends(reason.ContentFiltered, "", modeltest.FaultNamed(wire, "content filter")),
		"stall until the timeout": {faults: []modeltest.Step{twice.Step().StallAt(700)}, limits: "{timeout: 5s}", requests: 1, want: reason.DeadlineExceeded, says: "limits.timeout"},
		"no answer at all":        {faults: []modeltest.Step{twice.Step().StallAt(0)}, limits: "{timeout: 5s}", requests: 1, want: reason.DeadlineExceeded, says: "limits.timeout"},
		"three in a row": well(faultyCase{
			faults: append(append(after(503, "Retry-After-Ms", "10"), after(429, "Retry-After-Ms", "20")...), after(500, "Retry-After-Ms", "30")...),
			waits:  []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond},
		}),
	}
	const quick = "{maxDelay: 20ms}" // no header asks for more
	const impatient = "{maxDelay: 20ms, stallTimeout: 5s}"
	cases["keep-alives only"] = well(faultyCase{faults: []modeltest.Step{modeltest.Events(wire.Begun("half")).StallWith(len(wire.Begun("half")), ": keep-alive\n\n")}, retry: impatient})
	cases["a header that drips"] = well(faultyCase{faults: []modeltest.Step{modeltest.DripHeader()}, retry: impatient})
	size := len(wire.Stream(twice))
	for _, at := range []int{0, 1, size / 3, size / 2, size * 3 / 4} { // the providers' own tests cut at every byte
		cases[fmt.Sprintf("connection broken at byte %d", at)] = well(faultyCase{faults: []modeltest.Step{twice.Step().CutAt(at)}, retry: quick})
		cases[fmt.Sprintf("stream ended at byte %d", at)] = well(faultyCase{faults: []modeltest.Step{twice.Step().EndAt(at)}, retry: quick})
	}
	cut := func(finish string) *modeltest.Step {
		s := modeltest.Answer{Finish: finish, Calls: []modeltest.Call{
			{ID: "call_a", Tool: "bash", Args: `{"command":"echo one >> effects"`}, {ID: "call_b", Tool: "bash", Args: `{"command":"echo two >> effects"}`},
		}}.Step()
		return &s
	}
	if wire == modeltest.Gemini {
		return cases // its calls come whole: none is ever cut
	}
	// Arguments are never closed for the model: the whole call runs, the cut one does not.
	cases["truncated arguments"] = faultyCase{calls: cut(""), requests: 2, effects: 1, want: reason.Completed}
	cases["truncated by the limit"] = faultyCase{calls: cut(endpoints[wire].cut), requests: 2, effects: 1, want: reason.Completed}
	return cases
}

func TestFaultsOfTheServer(t *testing.T) {
	for wire := range endpoints {
		for name, c := range faultyCases(wire) {
			t.Run(wire.Name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				faulty(t, wire, c)
			})
		}
	}
}

func faulty(t *testing.T, wire modeltest.Wire, c faultyCase) {
	t.Helper()
	answer := twice.Step()
	if c.calls != nil {
		answer = *c.calls
	}
	server, err := modeltest.Options{Wire: wire}.Serve(append(c.faults, answer, modeltest.Answer{Text: "done"}.Step())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: m}\n  tools: [{name: bash}]\n  limits: "+
		cmp.Or(c.limits, "{timeout: 1m}")+"\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {"+endpoints[wire].spec+", model: test, baseURL: \""+
		server.URL+"\", retry: "+cmp.Or(c.retry, "{}")+"}\n"+allow, nil)
	var mu sync.Mutex
	var retries []message.Retry
	out := p.run(t, func(o *RunOptions) {
		o.InPlace = true
		o.Events = func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			if d, ok := e.Data.(event.ModelRetry); ok {
				retries = append(retries, d.Retry)
			}
		}
	})
	want(t, out, c.want)
	f := out.Run.Finished
	if all := f.Message + " " + f.Hint; !strings.Contains(all, c.says) {
		t.Errorf("the end does not say %q: %s", c.says, all)
	}
	if n := effects(t, p); n != c.effects {
		t.Errorf("%d effects, want %d", n, c.effects)
	}
	sent := server.Requests()
	if len(sent) != c.requests {
		t.Errorf("%d requests, want %d", len(sent), c.requests)
	}
	if c.want != reason.Completed {
		return
	}
	if len(retries) != len(c.faults) {
		t.Fatalf("%d retries were told of %d faults: %+v", len(retries), len(c.faults), retries)
	}
	for i, r := range retries {
		waited, told := sent[i+1].Time.Sub(sent[i].Time), time.Duration(r.WaitMillis)*time.Millisecond
		// The machine may be slow: only what was meant is held against the hundred
		// milliseconds that a wait may be longer than the header says.
		if waited < told || i < len(c.waits) && (told < c.waits[i] || told > c.waits[i]+200*time.Millisecond) {
			t.Errorf("wait %d: %s, meant %s, asked for %v", i+1, waited, told, c.waits)
		}
		if string(sent[i+1].Body) != string(sent[0].Body) {
			t.Errorf("attempt %d is another request than the first", i+2)
		}
	}
	c.whole(t, out)
}

// whole looks for what a fault must not leave behind.
func (c *faultyCase) whole(t *testing.T, out *Outcome) {
	t.Helper()
	texts := []string{}
	for _, m := range out.Run.Messages[1:] {
		if m.Error != "" || m.Open() {
			t.Errorf("message %s is left behind: %q", m.ID, m.Error)
		}
		texts = append(texts, m.Text())
	}
	if c.calls == nil && strings.Join(texts, "|") != twice.Text+"|done" || out.Result().Output != "done" {
		t.Errorf("the answers are %q", texts)
	}
	if n := len(out.Result().ToolCalls); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}
