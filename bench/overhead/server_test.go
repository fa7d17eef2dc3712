package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/bench/overhead/floor"
)

func TestServerNoticesACommandThatDidNotRun(t *testing.T) {
	request := func(results int, more string) string {
		return `{"stream":true,"messages":[` + strings.Repeat(`{"role":"tool"},`, results) + `"` + more + `"]}`
	}
	whole := []string{request(0, ""), request(1, ""), request(2, "lines=2")}
	for name, c := range map[string]struct {
		bodies []string
		want   string
	}{
		"good":        {whole, ""},
		"short":       {whole[:1], "1 requests, want 3"},
		"no stream":   {[]string{`{}`}, "asks for no stream"},
		"lost result": {[]string{whole[0], whole[0]}, "request 2 does not carry the results of 1 calls"},
		"not run":     {[]string{whole[0], whole[1], request(2, "lines=1")}, "no lines=2"},
		"too many":    {append(whole[:3:3], whole[2]), "after the final answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := listen(t.Context(), talk{turns: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			for _, body := range c.bodies {
				post(t, s.url+"/chat/completions", body)
			}
			if got := post(t, s.url+"/models", "{}"); got != http.StatusNotFound {
				t.Errorf("another path answers %d", got)
			}
			seen, err := s.result()
			if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("result = %v, want %q", err, c.want)
			}
			if err == nil && (len(seen.overheads) != 2 || len(seen.spans) != 2 || seen.spans[0] < seen.overheads[0]) {
				t.Errorf("overheads %v, spans %v: want one per turn, and a span holds its overhead", seen.overheads, seen.spans)
			}
		})
	}
}

func post(t *testing.T, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// said puts the pieces of an answer together as the floor does.
func said(t *testing.T, pieces [][]byte) floor.Message {
	t.Helper()
	var m floor.Message
	var text strings.Builder
	for _, piece := range pieces {
		for line := range strings.Lines(string(piece)) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			if err := m.Add([]byte(data), &text); err != nil {
				t.Fatalf("%v in %s", err, data)
			}
		}
	}
	m.Content = text.String()
	return m
}

func TestAnswerIsWhatAClientExpects(t *testing.T) {
	k := talk{turns: 2}
	for turn := 1; turn <= 2; turn++ {
		m := said(t, k.answer(turn))
		var in map[string]string
		if err := json.Unmarshal([]byte(m.ToolCalls[0].Function.Arguments), &in); err != nil {
			t.Fatalf("turn %d: the fragments do not add up: %v", turn, err)
		}
		if diff := cmp.Diff(k.command(turn), in["command"]); diff != "" {
			t.Errorf("turn %d: %s", turn, diff)
		}
	}
	if m := said(t, k.answer(3)); m.Content != "All commands ran." || m.ToolCalls != nil {
		t.Errorf("final answer %+v", m)
	}
	var m floor.Message
	if err := m.Add([]byte("<html>"), nil); err == nil {
		t.Error("a chunk that is not JSON is an error")
	}
}

func TestEssayIsAsLongAsItSays(t *testing.T) {
	pieces := essay.answer(1)
	m := said(t, pieces)
	if len(pieces) != essay.chunks+1 || len(m.Content) != essay.text || len(m.ToolCalls) != 1 {
		t.Errorf("%d pieces, %d bytes, %d calls, want %d, %d and one", len(pieces), len(m.Content), len(m.ToolCalls), essay.chunks+1, essay.text)
	}
	body := func(text string) []byte {
		b, err := json.Marshal(map[string]any{"stream": true, "messages": []floor.Message{{Role: "assistant", Content: text}, {Role: "tool"}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if got := essay.problem(2, body(m.Content)); got != "" {
		t.Errorf("the whole text: %s", got)
	}
	for name, text := range map[string]string{"cut": m.Content[:len(m.Content)-200], "other": strings.Repeat("y", essay.text)} {
		if got := essay.problem(2, body(text)); !strings.Contains(got, "does not carry the text") {
			t.Errorf("%s: %q, want the loss to be noticed", name, got)
		}
	}
}

func TestOnlyTheFirstCommandOfAFloodPrintsIt(t *testing.T) {
	flood := talk{turns: 2, flood: 1000}
	if got := flood.command(2); strings.Contains(got, "head") || !strings.Contains(got, "lines=") {
		t.Errorf("command 2 = %q", got)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "cd "+t.TempDir()+"; "+flood.command(1)).Output()
	if err != nil || string(out) != strings.Repeat("x", 1000) {
		t.Errorf("the first command prints %d bytes, %v", len(out), err)
	}
}
