package storytest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// serve starts a model server that answers each request alike and sets $URL:
// a status with a body of JSON, "html", "cut", "garbage", or "gone" for no server.
// Each request leaves a line in the file "requests".
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve STATUS|html|cut|garbage|gone")
	}
	if args[0] == "gone" {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
		ts.Check(err)
		ts.Setenv("URL", "http://"+l.Addr().String()+"/v1")
		ts.Check(l.Close())
		return
	}
	requests, err := os.Create(ts.MkAbs("requests"))
	ts.Check(err)
	ts.Defer(func() { _ = requests.Close() }) // it is only read by name
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = requests.WriteString(r.Method + " " + r.URL.Path + "\n") // the story counts them
		stream := func(text string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(text)) // a client that has gone is the story's point
		}
		switch args[0] {
		case "html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html><body>Please sign in</body></html>"))
		case "garbage":
			stream("data: {not json\n\n")
		case "cut":
			stream(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"half an ans"}}]}` + "\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(number(ts, args[0]))
			_, _ = w.Write([]byte(`{"error":{"message":"no","type":"test"}}`))
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL+"/v1")
}

// answers are the lines of a model server's part in a story: an answer each, or a
// refusal.
type answers []struct {
	modeltest.Answer
	// Status and Code refuse the request instead.
	Status int
	Code   string
}

// models are the model servers of the stories that run.
var models sync.Map // of *modeltest.Server by URL

// model starts a server that speaks a wire format and gives the answers in a YAML
// file, one for each request: model anthropic answers.yaml. The address is in URL. With
// -unchecked it takes what programs of others send, too.
func model(ts *testscript.TestScript, neg bool, args []string) {
	unchecked := len(args) > 0 && args[0] == "-unchecked"
	if unchecked {
		args = args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: model [-unchecked] chat|responses|anthropic|gemini ANSWERS")
	}
	var all answers
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[1])), &all))
	var wire modeltest.Wire
	for _, w := range modeltest.Wires() {
		if w.Name() == args[0] {
			wire = w
		}
	}
	if wire == nil {
		ts.Fatalf("no wire format %s", args[0])
	}
	var steps []modeltest.Step
	for _, a := range all {
		if a.Status != 0 {
			steps = append(steps, modeltest.Refuse(a.Status, nil, wire.Fault(a.Status, "no", a.Code)))
			continue
		}
		steps = append(steps, a.Step())
	}
	server, err := modeltest.Options{Wire: wire, Unchecked: unchecked}.Serve(steps...)
	ts.Check(err)
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL)
	models.Store(server.URL, server)
}

// requests prints the bodies of the requests that the newest model server was sent,
// one a line, to requests.jsonl.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: requests")
	}
	server, ok := models.Load(ts.Getenv("URL"))
	if !ok {
		ts.Fatalf("no model server has been started")
	}
	var b strings.Builder
	for _, r := range server.(*modeltest.Server).Requests() {
		line, err := json.Marshal(json.RawMessage(r.Body))
		ts.Check(err)
		b.Write(line)
		b.WriteByte('\n')
	}
	ts.Check(os.WriteFile(ts.MkAbs("requests.jsonl"), []byte(b.String()), 0o600))
}
