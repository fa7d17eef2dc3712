package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/host"
)

func remembered(t *testing.T, p *host.Plugin) []string {
	t.Helper()
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "memory", Args: json.RawMessage(`{}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Text == "" {
		return nil
	}
	return strings.Split(res.Text, "\n")
}

func TestAProgramIsToldThePastInOrder(t *testing.T) {
	p := start(t, exe(t), "serve-fixtures")
	if err := p.Recall(t.Context(), "r", "/w", nil); err != nil {
		t.Fatal(err)
	}
	err := p.Recall(t.Context(), "r", "/w", []host.Answer{
		{Tool: "memory", Metadata: json.RawMessage(`{"n":1}`)},
		{Tool: "echo", Metadata: json.RawMessage(`{"forgets":"everything"}`)},
		{Tool: "memory", Metadata: json.RawMessage(`"panic"`)},
		{Tool: "none", Metadata: json.RawMessage(`{}`)},
		{Tool: "memory", Metadata: json.RawMessage(`{"n":2}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`r /w {"n":1}`, `r /w {"n":2}`}, remembered(t, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALongPastComesInPiecesAndLosesItsBeginning(t *testing.T) {
	p := start(t, exe(t), "serve-fixtures")
	var answers []host.Answer
	for i := range 70 {
		text, err := json.Marshal(map[string]any{"n": i, "z": strings.Repeat("x", 1<<20)})
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, host.Answer{Tool: "memory", Metadata: text})
	}
	if err := p.Recall(t.Context(), "r", "/w", answers); err != nil {
		t.Fatal(err)
	}
	got := remembered(t, p)
	if len(got) != 63 || !strings.HasPrefix(got[0], `r /w {"n":7,`) || !strings.HasPrefix(got[62], `r /w {"n":69,`) {
		t.Errorf("%d answers were sent, the first %.20s", len(got), got[0])
	}
}

func TestAProgramWithoutMemoryIsNoError(t *testing.T) {
	p := start(t, exe(t), "serve-rogue", "status")
	if err := p.Recall(t.Context(), "r", "/w", []host.Answer{{Tool: "t", Metadata: json.RawMessage(`{}`)}}); err != nil {
		t.Error(err)
	}
	closeNow(t, p)
	if err := p.Recall(t.Context(), "r", "/w", []host.Answer{{Tool: "t", Metadata: json.RawMessage(`{}`)}}); err == nil {
		t.Error("a program that has ended was told something")
	}
}
