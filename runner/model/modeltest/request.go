package modeltest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

const (
	picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	paper   = "JVBERi0xLjQKJWVvZgo="
)

// media holds that pictures and papers are shown to the model, or named to one
// that cannot take them.
func (s suite) media(t *testing.T) {
	k := s.talk(t, Answer{Text: "ok"}.Step())
	file := func(mime, name, data string) message.Part {
		return message.Part{Type: message.PartFile, File: &message.File{Mime: mime, Filename: name, URL: "data:" + mime + ";base64," + data}}
	}
	m := user("Look at these.")
	m.Parts = append(m.Parts, file("image/png", "shot.png", picture), file("application/pdf", "report.pdf", paper), file("image/svg+xml", "drawing.svg", "PHN2Zy8+"))
	k.say(t, m)
	k.says(t, "ok")
	body := string(k.Requests()[0].Body)
	if !strings.Contains(body, picture) {
		t.Errorf("the picture is not in the request: %s", body)
	}
	if !strings.Contains(body, paper) && !strings.Contains(body, "report.pdf") {
		t.Errorf("the paper is neither shown nor named: %s", body)
	}
	// No API takes this one.
	if !strings.Contains(body, "drawing.svg") {
		t.Errorf("the drawing is not named: %s", body)
	}
}

// contract checks that a schema of the answer is in every request of the conversation, in
// the API's own member or in words, and in no question outside it.
func (s suite) contract(t *testing.T) {
	schema := `{"type":"object","properties":{"verdict":{"type":"string","enum":["good","bad"]}},"required":["verdict"],"additionalProperties":false}`
	answer := `{"verdict":"good"}`
	for _, tools := range [][]message.ToolSpec{nil, tools} {
		k := s.prompted(t, message.Prompt{System: "Be brief.", Tools: tools, Output: []byte(schema)}, Answer{Text: answer}.Step(), Answer{Text: answer}.Step(), Answer{Text: "in short"}.Step())
		k.says(t, answer)
		if out, err := k.next(t, t.Context(), message.Request{NoTools: true}); err != nil || out.Text != answer {
			t.Errorf("closing: %+v, %v", out, err)
		}
		// A question outside the conversation has no such answer.
		if out, err := k.next(t, t.Context(), aside); err != nil || out.Text != "in short" {
			t.Errorf("aside: %+v, %v", out, err)
		}
		var held []bool
		for _, r := range k.Requests() {
			held = append(held, strings.Contains(string(r.Body), "verdict"))
		}
		if !held[0] || !held[1] || held[2] {
			t.Errorf("with %d tools the requests have the schema: %v", len(tools), held)
		}
	}
}

// connection holds that all turns share one connection.
func (s suite) connection(t *testing.T) {
	const turns = 8
	steps := make([]Step, turns)
	for i := range steps {
		steps[i] = full.Step()
	}
	k := s.talk(t, steps...)
	remote := map[string]bool{}
	for range turns {
		k.wants(t, wantFull())
	}
	for _, r := range k.Requests() {
		remote[r.Remote] = true
		if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Transfer-Encoding") != "" {
			t.Errorf("request headers %v", r.Header)
		}
	}
	if len(remote) != 1 {
		t.Errorf("%d connections for %d turns", len(remote), turns)
	}
}

// sends asks a server once, at its address with more behind it, and returns what
// it was sent.
func (s suite) sends(t *testing.T, more, key string) Request {
	t.Helper()
	server := Serve(t, s.wire, Answer{Text: "ok"}.Step())
	c := s.open(t, Setup{BaseURL: server.URL + more, APIKey: key})
	if err := c.Append(user("What is in the folder?")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return server.Requests()[0]
}

// slash holds that a base URL may end with one: the server refuses two.
func (s suite) slash(t *testing.T) { s.sends(t, "/", Key) }

// redirect holds that nothing is sent to a place that no manifest names.
func (s suite) redirect(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	k := s.talk(t, Refuse(http.StatusTemporaryRedirect, http.Header{"Location": {elsewhere.URL}}, ""))
	_, err := k.next(t, t.Context(), message.Request{})
	if reason.Of(err) != reason.ModelError || asked != 0 || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("%v after %d requests elsewhere", err, asked)
	}
}

// sdkVariables are read by the vendors' own clients. No manifest names them, so
// that none may reach a request.
var sdkVariables = strings.Fields(`OPENAI_API_KEY OPENAI_ADMIN_KEY OPENAI_ORG_ID OPENAI_PROJECT_ID OPENAI_CUSTOM_HEADERS OPENAI_WEBHOOK_SECRET
	ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS ANTHROPIC_PROFILE ANTHROPIC_WORKSPACE_ID ANTHROPIC_ORGANIZATION_ID
	ANTHROPIC_WEBHOOK_SIGNING_KEY ANTHROPIC_IDENTITY_TOKEN ANTHROPIC_FEDERATION_RULE_ID GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION
	GOOGLE_APPLICATION_CREDENTIALS`)

// environment holds that nothing of the environment reaches a request.
func (s suite) environment(t *testing.T) {
	for _, name := range sdkVariables {
		t.Setenv(name, "X-From: the-environment")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1/the-environment")
	}
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("ANTHROPIC_CONFIG_DIR", t.TempDir())
	for _, key := range []string{Key, ""} { // a key of the manifest would override one of the environment
		r := s.sends(t, "", key)
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "the-environment") || name == "X-From" {
				t.Errorf("the request carries %s: %q", name, values)
			}
		}
		if s.wire.Key(r.Header) != key || strings.Contains(string(r.Body), "the-environment") {
			t.Errorf("the request carries the key %q and the body %s", s.wire.Key(r.Header), r.Body)
		}
	}
}
