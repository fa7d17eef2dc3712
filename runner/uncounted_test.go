package runner

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/runs"
)

// uncounting has an agent with a limit of tokens, and a model that asks for one
// call after another and does not count tokens.
func uncounting(t *testing.T, limits string) (place, *modeltest.Server) {
	t.Helper()
	var steps []modeltest.Step
	for i := range 80 {
		steps = append(steps, modeltest.Answer{
			Text:  fmt.Sprintf("Step %d: %s", i, strings.Repeat("a word and ", 20)),
			Calls: []modeltest.Call{{ID: fmt.Sprint("call_", i), Tool: "bash", Args: fmt.Sprintf(`{"command":"echo %d"}`, i)}},
		}.Step())
	}
	server, err := modeltest.NewServer(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return newPlace(t, modelAgent(limits, openaiModel("first", server.URL, `pricing: {input: "1", cacheRead: "0.1", output: "2"}`)+allow), nil), server
}

// A provider that does not count tokens gets no larger budget by the death of the
// processes that work on the run: what was estimated is in the journal.
func TestAnEstimatedBudgetSurvivesCrashes(t *testing.T) {
	for name, limits := range map[string]string{"tokens": "{maxTokens: 9000, maxSteps: 70}", "money": `{maxCost: "0.012", maxSteps: 70}`} {
		t.Run(name, func(t *testing.T) {
			calm, server := uncounting(t, limits)
			out := calm.run(t, func(o *RunOptions) { o.Approve = "all" })
			want(t, out, reason.BudgetExceeded)
			undisturbed := server.Requests()
			if n := len(undisturbed); n < 5 || n > 40 {
				t.Fatalf("%d requests without a crash: the budget is no measure", n)
			}

			// Each process dies at its sixth sync: before, while or after the model is
			// asked, as the machine has it.
			p, server := uncounting(t, limits)
			v := &victim{place: p}
			kills := 0
			for kills < 20 && v.die(t, doom{"sync", 6, 1}, 0, false) {
				kills++
			}
			if kills < 10 {
				t.Errorf("it died %d times only", kills)
			}
			out, err := p.resume(t)
			if err != nil {
				t.Fatal(err)
			}
			want(t, out, reason.BudgetExceeded)
			t.Logf("%d requests of %d bytes without a crash, %d of %d with %d", len(undisturbed), sent(undisturbed), len(server.Requests()), sent(server.Requests()), kills)
			if got, most := sent(server.Requests()), sent(undisturbed); got > most+most/5 {
				t.Errorf("%d bytes were sent with %d crashes, %d without", got, kills, most)
			}
			r := out.Result()
			if r.Cost != nil {
				t.Errorf("the cost is said to be %s", r.Cost)
			}
			if !strings.Contains(strings.Join(r.Warnings, "\n"), "estimate") {
				t.Errorf("no warning speaks of the estimate: %q", r.Warnings)
			}
			all, err := runs.List(t.Context(), p.state)
			if err != nil || len(all) != 1 || all[0].Cost != nil {
				t.Errorf("the list of runs has %+v, %v", all, err)
			}
		})
	}
}

// The list of runs says of a run that goes on no cost that nobody knows.
func TestAnUnknownCostIsNotListedAsNothing(t *testing.T) {
	p, _ := uncounting(t, "{maxSteps: 3}")
	v := &victim{place: p}
	if !v.die(t, doom{"sync", 9, 1}, 0, false) {
		t.Fatal("it was not killed")
	}
	all, err := runs.List(t.Context(), p.state)
	if err != nil || len(all) != 1 || all[0].Phase != runs.Interrupted || all[0].Steps == 0 || all[0].Cost != nil {
		t.Errorf("got %+v, %v", all, err)
	}
}

// sent is how many bytes a model has read: what a request costs, about.
func sent(requests []modeltest.Request) (n int) {
	for _, r := range requests {
		n += len(r.Body)
	}
	return n
}
