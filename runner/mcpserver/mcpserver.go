// Package mcpserver offers tools to clients of the Model Context Protocol, over standard input and output or HTTP.
//
// It speaks the protocol and holds no rules: what a call does is the function of its
// Tool, and whether it may happen is decided there.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is what a client can call.
type Tool struct {
	Name, Description string
	// Input is the JSON Schema of the arguments, Output that of a structured result: nil
	// where there is none.
	Input, Output json.RawMessage
	// Confirms says that calls ask by Call.Confirm.
	Confirms bool
	// Call runs one call. An error is shown to the client, as the result of a call that
	// failed. It may be called by many goroutines.
	Call func(ctx context.Context, c Call) (*Result, error)
}

// Call is a call of a client.
type Call struct {
	// Client is the name and the version that the client gives itself.
	Client string
	// Args are the arguments, unchecked.
	Args json.RawMessage
	// Progress shows a line of text to the client, if it wants to see progress.
	Progress func(text string)
	// Confirm asks the person behind the client a question of yes or no. nil where
	// the client cannot ask, and for a Tool that does not confirm.
	Confirm func(ctx context.Context, question string) (Reply, error)
}

// Reply is what a person has answered to a client.
type Reply struct {
	Approved bool
	Reason   string
}

// Result is what a client is returned.
type Result struct {
	// Text are the parts of the result.
	Text []string
	// Files are images and documents.
	Files []File
	// Structured is a JSON value that satisfies Output; nil is none.
	Structured json.RawMessage
	// Failed marks an error result.
	Failed bool
	// Meta is data for programs.
	Meta map[string]string
}

// File is an image or a document of a result.
type File struct {
	Name, Mime string
	Content    []byte
}

// Options are what a server is made of. Name and Tools are required.
type Options struct {
	Name, Version string
	// Instructions describe the tools together.
	Instructions string
	Tools        []Tool
}

const (
	// mostMessage bounds one message of a client.
	mostMessage = 8 << 20
	// mostText bounds one part of a result, mostDescription the description of a tool.
	mostText, mostDescription = 1 << 20, 8 << 10
	// mostCalls bounds the calls of all clients at the same time.
	mostCalls = 128
	// metaPrefix begins the names of our data in results.
	metaPrefix = "agentctl.dev/"
)

// Server serves tools. Make it with New.
type Server struct {
	protocol *mcp.Server
	rounds   *rounds
	// active is the number of calls in progress.
	active atomic.Int64
	slots  chan struct{}
}

// New returns a server for the tools.
func New(o Options) (*Server, error) {
	s := &Server{slots: make(chan struct{}, mostCalls), rounds: newRounds()}
	s.protocol = mcp.NewServer(&mcp.Implementation{Name: o.Name, Version: o.Version}, &mcp.ServerOptions{
		Instructions: o.Instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.protocol.AddReceivingMiddleware(onlyTools)
	names := map[string]bool{}
	for i := range o.Tools {
		t := &o.Tools[i]
		if names[t.Name] {
			return nil, fmt.Errorf("two tools are called %q", t.Name)
		}
		names[t.Name] = true
		if err := s.add(t); err != nil {
			return nil, fmt.Errorf("offer tool %q: %w", t.Name, err)
		}
	}
	return s, nil
}

// onlyTools refuses requests for what this server does not have and does not declare. The
// protocol's package would answer them with empty lists.
func onlyTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch feature, _, _ := strings.Cut(method, "/"); feature {
		case "prompts", "resources", "completion", "logging":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method + " (this server offers tools)"}
		}
		return next(ctx, method, req)
	}
}

// add offers a tool. The protocol's package refuses a schema by a panic.
func (s *Server) add(t *Tool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	input, err := objectSchema(t.Input)
	if err != nil {
		return err
	}
	offered := &mcp.Tool{Name: t.Name, Description: cut(t.Description, mostDescription), InputSchema: input}
	if len(t.Output) > 0 {
		offered.OutputSchema = t.Output
	}
	s.protocol.AddTool(offered, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.handle(ctx, t, req)
	})
	return nil
}

// objectSchema returns a schema that says that arguments are an object, as the protocol
// requires it.
func objectSchema(raw json.RawMessage) (json.RawMessage, error) {
	schema := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, fmt.Errorf("its schema is not a JSON object: %w", err)
		}
	}
	if _, ok := schema["type"]; ok {
		return raw, nil
	}
	schema = maps.Clone(schema)
	schema["type"] = json.RawMessage(`"object"`)
	return json.Marshal(schema)
}

// errMany is the result of a call for which there is no place.
var errMany = errors.New("too many calls are in progress: try again after the results of others")

// handle runs one call of a client.
func (s *Server) handle(ctx context.Context, t *Tool, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	select {
	case s.slots <- struct{}{}:
	default:
		return failed(errMany), nil
	}
	s.active.Add(1)
	defer func() {
		s.active.Add(-1)
		<-s.slots
	}()
	ctx, done := untilGone(ctx)
	defer done()
	c := Call{Client: clientOf(req), Args: req.Params.Arguments, Progress: progress(ctx, req)}
	switch {
	case !t.Confirms || !asked(req):
	case req.ProtocolVersion() >= newVersion:
		return s.rounds.call(ctx, t, c, req)
	default:
		c.Confirm = confirmer(req)
	}
	return result(t.Call(ctx, c)), nil
}

func clientOf(req *mcp.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil {
		return ""
	}
	return strings.TrimSpace(info.Name + " " + info.Version)
}

// progress returns what notifies the client of a call; without a token it wants nothing.
func progress(ctx context.Context, req *mcp.CallToolRequest) func(string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var n atomic.Int64
	return func(text string) {
		// A client that cannot be notified gets the result, or is gone.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n.Add(1)), Message: cut(text, mostDescription)})
	}
}

// result is what the client is sent. An error is shown as a result, so that the model
// behind the client reads it.
func result(r *Result, err error) *mcp.CallToolResult {
	if err != nil {
		return failed(err)
	}
	out := &mcp.CallToolResult{IsError: r.Failed, Content: []mcp.Content{}}
	for _, text := range r.Text {
		out.Content = append(out.Content, &mcp.TextContent{Text: cut(text, mostText)})
	}
	for _, f := range r.Files {
		out.Content = append(out.Content, f.content())
	}
	if len(r.Structured) > 0 {
		out.StructuredContent = r.Structured
	}
	for name, value := range r.Meta {
		if out.Meta == nil {
			out.Meta = mcp.Meta{}
		}
		out.Meta[metaPrefix+name] = value
	}
	return out
}

func (f *File) content() mcp.Content {
	if strings.HasPrefix(f.Mime, "image/") {
		return &mcp.ImageContent{MIMEType: f.Mime, Data: f.Content}
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///" + url.PathEscape(f.Name), MIMEType: f.Mime, Blob: f.Content}}
}

func failed(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: cut(err.Error(), mostText)}}}
}

// cut shortens a text, never inside a character.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "\n[cut]"
}
