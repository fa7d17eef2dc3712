package anthropic

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// A paused turn is sent back as it is, with the blocks of the API's own tools and
// without a message of the user behind it; what continues the turn follows it.
func TestAPausedTurnIsSentBackAsItIs(t *testing.T) {
	pause := stream(
		startText, hello, `{"type":"content_block_stop","index":0}`,
		begins("1", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`),
		adds("1", `{"type":"input_json_delta","partial_json":"{\"query\":"}`), adds("1", `{"type":"input_json_delta","partial_json":"\"go\"}"}`),
		`{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`, stop)
	goesOn := stream(
		begins("0", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.dev"}]}`),
		`{"type":"content_block_stop","index":0}`, begins("1", `{"type":"text","text":""}`), adds("1", `{"type":"text_delta","text":" there"}`),
		`{"type":"content_block_stop","index":1}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, stop)
	server, err := modeltest.Options{Wire: modeltest.Anthropic, Unchecked: true}.Serve(modeltest.Events(pause), modeltest.Events(goesOn), modeltest.Answer{Text: "bye"}.Step())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := New(httpapi.Config{Name: self.Name, Model: self.Model, BaseURL: server.URL}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	appends := func(m *message.Message) {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	next := func(id string, finish message.Finish) {
		out, err := c.Next(t.Context(), message.Request{ID: id}, quiet)
		if err != nil || out.Finish != finish {
			t.Fatalf("%+v, %v, want finish %s", out, err, finish)
		}
		m := modeltest.ToMessage(out, id)
		m.Finish = out.Finish
		appends(m)
	}
	appends(user(say("hi")))
	next("m1", message.FinishPause)
	next("m2", message.FinishStop)
	appends(user(say("and now?")))
	next("m3", message.FinishStop)
	const paused = `{"role":"assistant","content":[{"type":"text","text":"hello"},{"id":"srvtoolu_1","input":{"query":"go"},"name":"web_search","type":"server_tool_use"}]}`
	const result = `{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.dev"}]},{"type":"text","text":" there"}]}`
	sent := server.Requests()
	if body := string(sent[1].Body); !strings.HasSuffix(strings.SplitAfter(body, `"messages":[`)[1], paused+"]}") {
		t.Errorf("the paused turn is sent as %s", body)
	}
	if body := string(sent[2].Body); !strings.Contains(body, paused+","+result+",") {
		t.Errorf("the turn is sent as %s", body)
	}
}

// Another model is not sent what only the API can read, and asks for an answer.
func TestAPausedTurnOfAnotherModelIsAnAnswer(t *testing.T) {
	c := bare(t)
	m := assistant(say("so far"))
	m.Finish, m.Model = message.FinishPause, &message.ModelRef{Name: "other", Provider: "anthropic", Model: "other"}
	for _, m := range []*message.Message{user(say("hi")), m} {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := sent(c); !strings.HasSuffix(got, `"Continue."}]}`) {
		t.Errorf("sent %s", got)
	}
}
