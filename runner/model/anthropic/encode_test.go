package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

func say(text string) message.Part { return message.Part{Type: message.PartText, Text: text, End: 1} }

func tool(id, name, args string, r *message.ToolResult) message.Part {
	return message.Part{Type: message.PartTool, Tool: &message.ToolPart{CallID: id, Tool: name, Raw: args, State: message.StateCompleted, Result: r}}
}

func thinks(text, metadata string) message.Part {
	return message.Part{Type: message.PartReasoning, Text: text, Metadata: json.RawMessage(metadata), End: 1}
}

func file(mime, name, url string) message.Part {
	return message.Part{Type: message.PartFile, File: &message.File{Mime: mime, Filename: name, URL: url}}
}

func user(parts ...message.Part) *message.Message {
	return &message.Message{ID: "u", Role: message.RoleUser, Parts: parts}
}

var self = message.ModelRef{Name: "careful", Provider: "anthropic", Model: "claude-sonnet-4-5"}

func assistant(parts ...message.Part) *message.Message {
	return &message.Message{ID: "a", Role: message.RoleAssistant, Model: &self, Parts: parts}
}

// conversation is one with everything around it.
func conversation(t testing.TB) *Conversation {
	t.Helper()
	c, ok := over(t, &modeltest.Played{}).(*Conversation)
	if !ok {
		t.Fatal("over opens another conversation")
	}
	return c
}

func appendAll(t testing.TB, c *Conversation, messages []*message.Message) *Conversation {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatalf("message %s: %v", m.ID, err)
		}
	}
	return c
}

// request is what Next would send.
func request(c *Conversation) []byte {
	limit := c.given.most(c.cfg.Model, 0)
	return slices.Concat(c.history.b, c.history.closing(cached), c.end(c.choice(false), c.given.thinks(limit, c.history.unthought)))
}

// bare is a conversation without a prompt.
func bare(t testing.TB) *Conversation {
	t.Helper()
	c, err := New(httpapi.Config{Name: "careful", Model: self.Model}, message.Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sent are the messages of a request, without marks for the cache.
func sent(c *Conversation) string {
	all := string(c.history.b[len(c.prefix):]) + string(c.history.closing(""))
	return strings.TrimPrefix(all, ",")
}

func TestMessagesHaveOneForm(t *testing.T) {
	ok, failed := &message.ToolResult{Text: "done"}, &message.ToolResult{Text: "no such file", Code: message.CodeTool}
	const hi = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	const carryOn = `{"role":"user","content":[{"type":"text","text":"Continue."}]}`
	cases := map[string]struct {
		reason   string
		messages []*message.Message
		want     string
	}{
		"nothing":     {"a request needs a message", nil, carryOn},
		"user":        {"a text is a block", []*message.Message{user(say("hi"))}, hi},
		"users":       {"neighbours of one role are one message", []*message.Message{user(say("hi")), user(say("there"))}, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}`},
		"blank":       {"blank texts are refused", []*message.Message{user(say("")), user(say(" \n")), user(say("hi"))}, hi},
		"answer":      {"the space behind an answer is refused where it is the last one", []*message.Message{user(say("hi")), assistant(say("ok \n")), user(say("hi"))}, hi + `,{"role":"assistant","content":[{"type":"text","text":"ok"}]},` + hi},
		"blank one":   {"an answer that says nothing is none", []*message.Message{user(say("hi")), assistant(say(" \n")), assistant()}, hi},
		"last answer": {"nobody may go on with what a model began", []*message.Message{user(say("hi")), assistant(say("ok"))}, hi + `,{"role":"assistant","content":[{"type":"text","text":"ok"}]},` + carryOn},
		"answers":     {"and so it was when the next one was asked for", []*message.Message{user(say("hi")), assistant(say("a")), assistant(say("b")), user(say("hi"))}, hi + `,{"role":"assistant","content":[{"type":"text","text":"a"}]},` + carryOn + `,{"role":"assistant","content":[{"type":"text","text":"b"}]},` + hi},
		"begin":       {"a conversation begins with a user", []*message.Message{assistant(say("a")), user(say("hi"))}, carryOn + `,{"role":"assistant","content":[{"type":"text","text":"a"}]},` + hi},
		"results": {
			"results are the first blocks behind their calls, and the user goes on in the same message",
			[]*message.Message{user(say("hi")), assistant(say("ok"), tool("c1", "bash", `{"a":1}`, ok), tool("c2", "bash", "", failed)), user(say("there"))},
			hi + `,{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"bash","input":{"a":1}},{"type":"tool_use","id":"c2","name":"bash","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"},{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":"tool: no such file"},{"type":"text","text":"there"}]}`,
		},
		"no result": {
			"a call that was interrupted has failed",
			[]*message.Message{user(say("hi")), assistant(tool("c1", "bash", "{}", nil))},
			hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"interrupted: the call has no result; it may or may not have run"}]}`,
		},
		"empty result": {
			"a result may be empty, a block of text may not",
			[]*message.Message{user(say("hi")), assistant(tool("c1", "bash", "{}", &message.ToolResult{Text: " \n"}))},
			hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`,
		},
		"foreign call": {
			"ids, names and arguments that the API would refuse are mended",
			[]*message.Message{user(say("hi")), assistant(tool("functions.bash:0", "no such.tool", `{"cut`, ok), tool("c", "bash", `{"half":"\ud83d","n":1e400,"x":"<"}`, ok))},
			hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"functions_bash_0_7179b394","name":"no_such_tool","input":{"invalid_arguments":"{\"cut"}},{"type":"tool_use","id":"c","name":"bash","input":{"half":"�","n":1e400,"x":"<"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_bash_0_7179b394","content":"done"},{"type":"tool_result","tool_use_id":"c","content":"done"}]}`,
		},
		"no tools": {
			"calls want a declared tool, even where there is none any more",
			[]*message.Message{user(say("hi")), assistant(tool("c1", "bash", "{}", ok))},
			hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"}]}`,
		},
		"files": {
			"images and documents are shown, anything else is told of",
			[]*message.Message{user(say("look"), file("image/png", "a.png", "data:image/png;base64,iVBO"), file("application/pdf", "b.pdf", "data:application/pdf;base64,JVBE"), file("application/pdf", "", "data:application/pdf;base64,JVBE"), file("text/csv", "c.csv", "data:text/csv;base64,YQ=="), file("image/png", "d.png", "file:d.png"))},
			`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}},` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"},"title":"b.pdf"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}},` +
				`{"type":"text","text":"[attached: c.csv (text/csv), content not shown]\n\n[attached: d.png (image/png), content not shown]"}]}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := appendAll(t, bare(t), c.messages)
			if d := cmp.Diff(c.want, sent(k)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			if err := modeltest.Anthropic.Check(request(k)); err != nil {
				t.Errorf("the API would refuse it: %v", err)
			}
		})
	}
}

// What was sent stays what is sent: a cache keeps a beginning only.
func TestHistoryOnlyGrowsByWhatIsAppended(t *testing.T) {
	c := conversation(t)
	for _, m := range modeltest.Conversation(t) {
		before := slices.Clone(c.history.b)
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.history.b[:len(before)], before) {
			t.Fatalf("message %s changed what stood before it", m.ID)
		}
	}
}

func TestThoughtsGoBackAsTheyCame(t *testing.T) {
	call := tool("c1", "bash", "{}", &message.ToolResult{Text: "ok"})
	const text, use = `{"type":"text","text":"one"}`, `{"type":"tool_use","id":"c1","name":"bash","input":{}}`
	first, second := `{"type":"thinking","thinking":"hm","signature":"s1"}`, `{"type":"thinking","thinking":"so","signature":"s2"}`
	cases := map[string]struct {
		reason string
		parts  []message.Part
		want   string
	}{
		"one":       {"a thought stands in front", []message.Part{thinks("hm", `{"blocks":[{"thinking":2,"signature":"s1"}]}`), say("one"), call}, first + "," + text + "," + use},
		"redacted":  {"what only the API can read goes back too", []message.Part{thinks("", `{"blocks":[{"redacted":"x"}]}`), say("one")}, `{"type":"redacted_thinking","data":"x"},` + text},
		"omitted":   {"so does a thought that was not shown", []message.Part{thinks("", `{"blocks":[{"thinking":0,"signature":"s"}]}`), say("one")}, `{"type":"thinking","thinking":"","signature":"s"},` + text},
		"between":   {"a thought stands where it stood", []message.Part{thinks("hmso", `{"blocks":[{"thinking":2,"signature":"s1"},{"text":3},{"thinking":2,"signature":"s2"}]}`), say("one"), call}, first + "," + text + "," + second + "," + use},
		"behind":    {"between calls as well", []message.Part{thinks("hmso", `{"blocks":[{"thinking":2,"signature":"s1"},{"calls":1},{"thinking":2,"signature":"s2"}]}`), call, say("one")}, first + "," + use + "," + second + "," + text},
		"last":      {"a message may not end in one", []message.Part{thinks("hmso", `{"blocks":[{"thinking":2,"signature":"s1"},{"text":3},{"thinking":2,"signature":"s2"}]}`), say("one")}, first + "," + text},
		"alone":     {"nor be one", []message.Part{thinks("hm", `{"blocks":[{"thinking":2,"signature":"s1"}]}`)}, ""},
		"changed":   {"a text that is not what was signed is left out", []message.Part{thinks("h*m", `{"blocks":[{"thinking":2,"signature":"s1"}]}`), say("one")}, text},
		"too long":  {"lengths are looked at", []message.Part{thinks("hm", `{"blocks":[{"thinking":9,"signature":"s1"}]}`), say("one")}, text},
		"negative":  {"whatever they are", []message.Part{thinks("hm", `{"blocks":[{"text":-1},{"thinking":2}]}`), say("one")}, text},
		"below 0":   {"all of them", []message.Part{thinks("hm", `{"blocks":[{"thinking":-2}]}`), say("one")}, text},
		"unsigned":  {"a thought without its metadata cannot go back", []message.Part{thinks("hm", ""), say("one")}, text},
		"foreign":   {"nor with another's", []message.Part{thinks("hm", `{"signature":"sig"}`), say("one")}, text},
		"no JSON":   {"nor with garbage", []message.Part{thinks("hm", `[`), say("one")}, text},
		"shortened": {"a text that has become shorter keeps the order", []message.Part{thinks("hmso", `{"blocks":[{"thinking":2,"signature":"s1"},{"text":300},{"thinking":2,"signature":"s2"},{"calls":7}]}`), say("one"), call}, first + "," + text + "," + second + "," + use},
		"two parts": {"two reasonings are one behind the other", []message.Part{thinks("hm", `{"blocks":[{"thinking":2,"signature":"s1"},{"text":3}]}`), thinks("so", `{"blocks":[{"thinking":2,"signature":"s2"}]}`), say("one")}, first + "," + second + "," + text},
	}
	for name, c := range cases {
		k := appendAll(t, bare(t), []*message.Message{user(say("hi")), assistant(c.parts...)})
		const head = `{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[`
		got, _, _ := strings.Cut(strings.TrimPrefix(sent(k), head), `]},{"role":"user"`)
		if c.want == "" {
			got = strings.TrimPrefix(got, strings.TrimSuffix(head, `,{"role":"assistant","content":[`))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
	}
	// To any other model they mean nothing.
	for _, other := range []message.ModelRef{{Name: self.Name, Provider: "anthropic", Model: "another"}, {Name: self.Name, Provider: "openai", Model: self.Model}, {Name: "other", Provider: "anthropic", Model: self.Model}} {
		m := assistant(cases["between"].parts...)
		m.Model = &other
		if got := sent(appendAll(t, bare(t), []*message.Message{m})); strings.Contains(got, "thinking") || !strings.Contains(got, text+","+use) {
			t.Errorf("%+v: %s", other, got)
		}
	}
}

func TestCallIDsThatDifferStayDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"", "a", "a.b", "a:b", "a_b", "ä", "ö", "toolu_01D7FLrfh4GYq7yT1ULFeyMV", "call-1", " ", "a b"} {
		got := callID(id)
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", id, other, got)
		}
		seen[got] = id
		if strings.Trim(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			t.Errorf("%q became %q", id, got)
		}
	}
	if got := callID("toolu_01"); got != "toolu_01" {
		t.Errorf("an id of the API became %q", got)
	}
}

func TestToolsAreDeclaredAsTheAPITakesThem(t *testing.T) {
	for in, want := range map[string]string{
		"":                        `"input_schema":{"type":"object","properties":{}}`,
		`{"type":"object","a":1}`: `"input_schema":{"type":"object","a":1}`,
		`{}`:                      `"input_schema":{"type":"object"}`,
		`{"properties":{"a":{}}}`: `"input_schema":{"properties":{"a":{}},"type":"object"}`,
		`{"type":"object","anyOf":[{"required":["a"]}],"b":2}`: `"description":"Does it.\n\nThe arguments must satisfy anyOf of this JSON Schema: [{\"required\":[\"a\"]}]","input_schema":{"type":"object","b":2}`,
		`{"type":"object","properties":{"a":{"anyOf":[{}]}}}`:  `"input_schema":{"type":"object","properties":{"a":{"anyOf":[{}]}}}`,
	} {
		c, err := New(httpapi.Config{Name: "m", Model: "x"}, message.Prompt{Tools: []message.ToolSpec{{Name: "t", Description: "Does it.", Parameters: []byte(in)}, {Name: "u"}}})
		if err != nil {
			t.Fatal(err)
		}
		body := string(request(c))
		if !strings.Contains(body, want) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s, want %s", in, body, want)
		}
		if !strings.Contains(body, `{"name":"u","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],`) {
			t.Errorf("the last tool is not marked, or has an empty description: %s", body)
		}
	}
	for _, bad := range []string{"{", "[]", `{"a":1}x`, `"object"`} {
		if _, err := New(httpapi.Config{Name: "m", Model: "x"}, message.Prompt{Tools: []message.ToolSpec{{Name: "t", Parameters: []byte(bad)}}}); reason.Of(err) != reason.ModelError || !strings.Contains(err.Error(), `tool "t"`) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Three of at most four marks: behind the tools, behind the system prompt, and
// behind the newest message, where it moves on with every turn.
func TestMarksForTheCache(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Anthropic, modeltest.Answer{Text: "a"}.Step(), modeltest.Answer{Text: "b"}.Step(), modeltest.Answer{Text: "c"}.Step())
	c, err := New(httpapi.Config{Name: "m", Model: "test-model", BaseURL: s.URL}, message.Prompt{System: "Be brief.", Tools: []message.ToolSpec{{Name: "a"}, {Name: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, m := range []*message.Message{user(say("one")), user(say("two"))} {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Next(t.Context(), message.Request{}, quiet); err != nil {
			t.Fatal(err)
		}
		body := string(s.Requests()[i].Body)
		newest := fmt.Sprintf(`{"type":"text","text":%q%s}]}]`, m.Parts[0].Text, cached)
		if strings.Count(body, cached) != 3 || !strings.Contains(body, newest) || !strings.Contains(body, `"Be brief."`+cached) {
			t.Errorf("request %d: %s", i+1, body)
		}
	}
	if _, err := c.Next(t.Context(), message.Request{Aside: &message.Aside{System: "Summarise.", Text: "All."}}, quiet); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[2].Body); strings.Contains(body, "cache_control") || strings.Contains(body, `"tools"`) {
		t.Errorf("a question that is asked once: %s", body)
	}
}

func TestAppendSaysWhatItCannotRead(t *testing.T) {
	c := bare(t)
	for name, m := range map[string]*message.Message{
		"role":    {ID: "m1", Role: "god"},
		"no blob": user(file("image/png", "a.png", "blob:sha256:1")),
	} {
		before := string(request(c))
		if err := c.Append(m); reason.Of(err) != reason.Internal || !strings.Contains(err.Error(), "careful") {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Reset([]*message.Message{m}); reason.Of(err) != reason.Internal {
			t.Errorf("%s: reset: %v", name, err)
		}
		if string(request(c)) != before {
			t.Errorf("%s: a message that cannot be read changed the conversation", name)
		}
	}
}
