package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient is a host of MCP servers that does what a file says, a line each:
//
//	list                          shows the tools
//	call TOOL {"key": "value"}    calls a tool and shows the result
//	within 200ms TOOL {…}         the same, and gives up after a time
//	begin NAME TOOL {…}           calls a tool; the following lines do not wait for the result
//	await NAME                    waits for the result, which is shown under the name
//	cancel NAME                   gives the call up
//	shell COMMAND                 runs a command and shows its output
//	die                           ends without a word
//
// It starts the server that follows the file, or connects to that of -url.
func mcpClient() {
	f := flag.NewFlagSet("mcp-client", flag.ExitOnError)
	url := f.String("url", "", "server to connect to instead of starting one, or a file with its address")
	token := f.String("token", "", "bearer token")
	answer := f.String("answer", "", "answer to questions: accept, decline or cancel; none asks nobody")
	version := f.String("version", "", "newest version of the protocol")
	_ = f.Parse(os.Args[1:]) // ends the program on an error
	if err := (&mcpHost{url: *url, token: *token, answer: *answer, version: *version}).play(f.Arg(0), f.Args()[min(1, f.NArg()):]); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-client:", err)
		os.Exit(1)
	}
}

type mcpHost struct {
	url, token, answer, version string

	begun map[string]*begunCall
}

// begunCall is a call in progress.
type begunCall struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func (h *mcpHost) play(file string, server []string) error {
	script, err := os.Open(file) //nolint:gosec // the story names it
	if err != nil {
		return err
	}
	defer script.Close()
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			fmt.Println("progress", r.Params.Message)
		},
	}
	if h.answer != "" {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			first, _, _ := strings.Cut(r.Params.Message, "\n")
			fmt.Println("asked", first)
			return &mcp.ElicitResult{Action: h.answer, Content: map[string]any{"reason": "the host says so"}}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "story", Version: "1"}, options)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := client.Connect(ctx, h.transport(server), &mcp.ClientSessionOptions{ProtocolVersion: h.version})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(script)
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		if err := h.do(ctx, session, lines.Text()); err != nil {
			return fmt.Errorf("%.80s: %w", lines.Text(), err)
		}
	}
	return errors.Join(lines.Err(), session.Close())
}

func (h *mcpHost) transport(server []string) mcp.Transport {
	if h.url != "" {
		if address, err := os.ReadFile(h.url); err == nil {
			h.url = strings.TrimSpace(string(address))
		}
		return &mcp.StreamableClientTransport{Endpoint: h.url, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: bearer(h.token)}}
	}
	cmd := exec.Command(server[0], server[1:]...) //nolint:gosec,noctx // the transport ends it
	cmd.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: cmd}
}

func (h *mcpHost) do(ctx context.Context, session *mcp.ClientSession, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "":
		return nil
	case "list":
		all, err := session.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		for _, t := range all.Tools {
			fmt.Println("tool", t.Name, "-", t.Description)
		}
		return nil
	case "die":
		os.Exit(0)
	case "within":
		limit, call, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(limit)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		h.call(ctx, session, call, "")
		return nil
	case "call":
		h.call(ctx, session, rest, "")
		return nil
	case "shell":
		out, err := exec.CommandContext(ctx, "sh", "-c", rest).CombinedOutput() //nolint:gosec // the story says what
		fmt.Print(string(out))
		return err
	case "begin":
		name, call, _ := strings.Cut(rest, " ")
		h.begin(ctx, session, name, call)
		return nil
	}
	return h.end(ctx, word, rest)
}

func (h *mcpHost) begin(ctx context.Context, session *mcp.ClientSession, name, call string) {
	b := &begunCall{ended: make(chan struct{})}
	ctx, b.cancel = context.WithCancel(ctx)
	if h.begun == nil {
		h.begun = map[string]*begunCall{}
	}
	h.begun[name] = b
	go func() {
		defer close(b.ended)
		defer b.cancel()
		h.call(ctx, session, call, name)
	}()
}

// end waits for a call that was begun.
func (h *mcpHost) end(ctx context.Context, word, name string) error {
	b := h.begun[name]
	if b == nil || word != "await" && word != "cancel" {
		return fmt.Errorf("unknown word %q, or no call %q", word, name)
	}
	if word == "cancel" {
		b.cancel()
	}
	select {
	case <-b.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call shows a result, under the name of the tool if it has no other. An argument "@N" stands for a text of N bytes.
func (h *mcpHost) call(ctx context.Context, session *mcp.ClientSession, line, name string) {
	tool, args, _ := strings.Cut(line, " ")
	if name == "" {
		name = tool
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(args, "@")); err == nil {
		args = `{"command":"` + strings.Repeat("x", n) + `"}`
	}
	params := &mcp.CallToolParams{Name: tool, Arguments: jsonText(args)}
	params.SetProgressToken(name)
	r, err := session.CallTool(ctx, params)
	if err != nil {
		fmt.Printf("failed %s: %.300v\n", name, err)
		return
	}
	how := "result"
	if r.IsError {
		how = "error"
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			fmt.Printf("%s %s: %s\n", how, name, c.Text)
		case *mcp.ImageContent:
			fmt.Printf("%s %s: image %s of %d bytes\n", how, name, c.MIMEType, len(c.Data))
		default:
			fmt.Printf("%s %s: %T\n", how, name, c)
		}
	}
	if r.StructuredContent != nil {
		fmt.Printf("structured %s: %v\n", name, r.StructuredContent)
	}
}

// jsonText is sent as it is written.
type jsonText string

// MarshalJSON implements json.Marshaler.
func (t jsonText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("{}"), nil
	}
	return []byte(t), nil
}

// bearer sends a token with each request.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}
