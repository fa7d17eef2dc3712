package openai

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

// TestFragmentsAreNotReadAgain is about long arguments in small pieces: one that
// read all of them with every piece would take minutes.
func TestFragmentsAreNotReadAgain(t *testing.T) {
	for name, function := range map[string]string{
		"as the API sends them": `{"arguments":"xxxxxxxxxx"}`,
		"each with the name":    `{"name":"bash","arguments":"xxxxxxxxxx"}`,
	} {
		a := &chatAnswer{Gather: httpapi.NewGather(func(message.Delta) {})}
		pieces := []string{`{"name":"bash","arguments":"{\"x\":\""}`}
		for range 200_000 {
			pieces = append(pieces, function)
		}
		for _, p := range append(pieces, `{"name":"bash","arguments":"\"}"}`) {
			if err := a.chunk([]byte(delta(`{"tool_calls":[{"index":0,"function":` + p + `}]}`))); err != nil {
				t.Fatal(err)
			}
		}
		if want := `{"x":"` + strings.Repeat("x", 2_000_000) + `"}`; len(a.Calls) != 1 || string(a.Calls[0].Args) != want {
			t.Errorf("%s: %d calls, want one", name, len(a.Calls))
		}
	}
}
