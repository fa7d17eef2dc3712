package pluginkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp"
)

// MCPOptions name an MCP server: a Program with a command, or a URL.
type MCPOptions struct {
	Program
	// URL of a server over HTTP, and Headers that it is sent as NAME=value. A Program has
	// none.
	URL     string
	Headers []string
	// Name is the Tool's call name; default server.
	Name string
	// Call is a function to call with Args and Timeout, by the server's own name; "" calls
	// none. Answers and Progress are those of CallOptions.
	Call     string
	Args     json.RawMessage
	Timeout  time.Duration
	Answers  []string
	Progress func(text string)
}

// MCPReport is what a server has shown of itself.
type MCPReport struct {
	Functions []MCPFunction `json:"functions"`
	// LeftOut are those that no run can use.
	LeftOut []tool.Omission `json:"leftOut"`
	Checks  []MCPCheck      `json:"checks"`
	// Answer of the call; nil if none was made.
	Answer *Answer `json:"answer"`
}

// MCPFunction is a function that a server describes.
type MCPFunction struct {
	// Name is the server's own, CallName that of models and rules.
	Name        string          `json:"name"`
	CallName    string          `json:"callName"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Hints       tool.Hints      `json:"hints"`
}

// MCPCheck is one thing that was tried. A Problem is what is wrong; "" is nothing.
type MCPCheck struct {
	Check   string `json:"check"`
	Problem string `json:"problem"`
}

// Failed reports whether something is wrong with the server, or the call failed.
func (r *MCPReport) Failed() bool {
	return r.Answer != nil && r.Answer.Error != "" || slices.ContainsFunc(r.Checks, func(c MCPCheck) bool { return c.Problem != "" })
}

// MCP connects to a server as a run does, lists its functions, tries what every run relies
// on, and calls one of them if it is named. Its errors are a *reason.UsageError, or carry
// the reason why the server could not be asked.
func MCP(ctx context.Context, o MCPOptions) (*MCPReport, error) {
	source, o, err := o.source()
	if err != nil {
		return nil, err
	}
	launcher, held, err := o.hold()
	if err != nil {
		return nil, err
	}
	site := tool.NewSite(tool.SiteOptions{Kinds: tool.Kinds{mcp.Kind()}, Launcher: launcher})
	d, err := (tool.Kinds{mcp.Kind()}).Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{
		CallName: o.Name, Source: *source, Isolation: v1alpha1.Isolation{Minimum: o.Isolation},
	}})
	if err != nil {
		return nil, errors.Join(&reason.UsageError{Err: err}, launcher.Close())
	}
	pool := tool.PoolOptions{Site: site, Dir: o.Workspace, Env: map[string][]string{o.Name: o.Env}, Secrets: map[string]map[string]string{o.Name: {}}, Ask: o.ask()}
	for _, h := range o.Headers {
		name, value, _ := strings.Cut(h, "=")
		pool.Secrets[o.Name][name] = value
	}
	if held != nil {
		pool.Profiles = map[string]*spec.Profile{o.Name: held}
	}
	trial := NewTrial(o)
	pool.LeftOut = trial.LeftOut
	p := tool.NewPool(pool)
	err = trial.Run(ctx, p, &d, func(text []byte) []byte { return text })
	return trial.Report, errors.Join(err, p.Close(), launcher.Close(), p.Release(), site.Close())
}

// source checks the options, and returns the server as a Tool declares it.
func (o MCPOptions) source() (*v1alpha1.ToolSource, MCPOptions, error) {
	o = o.complete()
	if (o.URL == "") == (len(o.Command) == 0) {
		return nil, o, reason.Usagef("name a command or a URL of a server")
	}
	if o.URL == "" {
		var err error
		if o.Program, err = o.prepare(); err != nil {
			return nil, o, err
		}
		return &v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Stdio: &v1alpha1.MCPStdio{Command: o.Command}}}, o, nil
	}
	if at, err := url.Parse(o.URL); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, o, reason.Usagef("%q is not the URL of a server", o.URL).WithHint("for example https://mcp.example.com/mcp")
	}
	o.Isolation = v1alpha1.IsolationNone
	remote := &v1alpha1.MCPHTTP{URL: o.URL}
	for _, h := range o.Headers {
		name, _, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, o, reason.Usagef("a header is written as NAME=value")
		}
		remote.Headers = append(remote.Headers, v1alpha1.Header{Name: name})
	}
	return &v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{HTTP: remote}}, o, nil
}

// complete fills in the defaults.
func (o MCPOptions) complete() MCPOptions {
	if o.Name == "" {
		o.Name = "server"
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultCallTimeout
	}
	if len(o.Args) == 0 {
		o.Args = json.RawMessage(`{}`)
	}
	return o
}

// ask answers the questions of a call in their order.
func (o *MCPOptions) ask() func(context.Context, string, host.Question) (string, error) {
	var mu sync.Mutex
	left := slices.Clone(o.Answers)
	return func(context.Context, string, host.Question) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(left) == 0 {
			return "", errors.New("no answer is left")
		}
		said := left[0]
		left = left[1:]
		return said, nil
	}
}

// Trial tries one server. Make it with NewTrial.
type Trial struct {
	// Report is what the server has shown, once Run has returned.
	Report *MCPReport

	o    MCPOptions
	mu   sync.Mutex
	left []tool.Omission
}

// NewTrial returns a trial of a server that is declared elsewhere, as a Tool of manifests:
// the options name no command and no URL.
func NewTrial(o MCPOptions) *Trial { return &Trial{o: o.complete()} }

// Ask answers the questions of the server with the answers of the options.
func (t *Trial) Ask() func(context.Context, string, host.Question) (string, error) { return t.o.ask() }

// LeftOut takes the functions that the server describes and no run can use.
func (t *Trial) LeftOut(_ string, all []tool.Omission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = all
}

func (t *Trial) omitted() []tool.Omission {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]tool.Omission{}, t.left...)
}

// Run tries the server of a Tool. The report holds none of the secrets that hide removes
// from JSON.
func (t *Trial) Run(ctx context.Context, p *tool.Pool, d *tool.Definition, hide func([]byte) []byte) error {
	if d.Kind != mcp.Kind().Name {
		return reason.Usagef("tool %q is not an MCP server: its source is %s", d.Program(), d.Kind).WithHint("agentctl plugin call tries a program")
	}
	t.o.Name = d.Program()
	report, err := t.o.try(ctx, p, d, t)
	if report != nil {
		shown := &MCPReport{}
		text, wrong := json.Marshal(report)
		if wrong == nil {
			wrong = json.Unmarshal(hide(text), shown)
		}
		if wrong != nil {
			return errors.Join(err, reason.New(reason.Internal, "remove the secrets from the report: %w", wrong))
		}
		t.Report = shown
	}
	return err
}

func (o *MCPOptions) try(ctx context.Context, p *tool.Pool, d *tool.Definition, t *Trial) (*MCPReport, error) {
	found, err := p.Functions(ctx, d)
	if err != nil {
		return nil, tool.WithHint(fmt.Errorf("tool %q: ask its program for its functions: %w", d.Name, err), "check spec.source of the Tool")
	}
	r := &MCPReport{Functions: []MCPFunction{}, LeftOut: t.omitted()}
	for _, f := range found {
		r.Functions = append(r.Functions, MCPFunction{Name: f.Name, CallName: tool.FunctionName(o.Name, f.Name), Description: f.Description, Parameters: f.Parameters, Hints: f.Hints})
	}
	usable := ""
	if len(r.LeftOut) > 0 {
		usable = fmt.Sprintf("%d left out: %s", len(r.LeftOut), tool.Omitted(r.LeftOut))
	}
	r.add("every function can be used", usable)
	if len(found) == 0 {
		r.add("functions", "it describes none that can be used")
		return r, nil
	}
	all, err := tool.Expand(d, found)
	if err != nil {
		return nil, err
	}
	r.add("functions", "")
	r.add("distinct names", text(tool.Distinct(all)))
	r.describe(found)
	r.add("an unknown function is refused", o.refusesUnknown(ctx, p, all[0]))
	again, err := p.Functions(ctx, d)
	if err == nil && tool.PinAll(d, again) != tool.PinAll(d, found) {
		err = errors.New("asked again, it describes other functions: no run could call them")
	}
	r.add("the same functions when asked again", text(err))
	if o.Call == "" {
		return r, nil
	}
	at := slices.IndexFunc(all, func(f tool.Definition) bool { return f.Function == o.Call || f.Name == o.Call })
	if at < 0 {
		return r, reason.Usagef("the server has no function %q", o.Call)
	}
	r.Answer, err = o.answer(ctx, p, &all[at])
	return r, err
}

func (r *MCPReport) add(check, problem string) {
	r.Checks = append(r.Checks, MCPCheck{check, problem})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// describe checks what a model and a rule can make of the descriptions.
func (r *MCPReport) describe(found []tool.Function) {
	var mute, closed []string
	for _, f := range found {
		if strings.TrimSpace(f.Description) == "" {
			mute = append(mute, f.Name)
		}
		if f.Hints.ReadOnly && f.Hints.Destructive {
			closed = append(closed, f.Name)
		}
	}
	r.add("descriptions", problem("no description: ", mute))
	r.add("annotations", problem("both readOnlyHint and destructiveHint: ", closed))
}

func problem(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return what + strings.Join(names, ", ")
}

func (o *MCPOptions) refusesUnknown(ctx context.Context, p *tool.Pool, like tool.Definition) string {
	server, err := p.Serve(ctx, &like, tool.Outside{})
	if err != nil {
		return err.Error()
	}
	reply, err := server.Call(ctx, host.CallRequest{
		Tool: "agentctl-no-such-function", Args: json.RawMessage(`{}`), ID: "unknown", Run: "test", Key: "test", Workspace: o.Workspace, Timeout: 10 * time.Second,
	}, func(string) {})
	switch {
	case err != nil:
		return err.Error()
	case !reply.Failed:
		return "it answered a call of a function that it does not have"
	}
	return ""
}

func (o *MCPOptions) answer(ctx context.Context, p *tool.Pool, d *tool.Definition) (*Answer, error) {
	schema, err := tool.NewSchema(d.Parameters)
	if err != nil {
		return nil, err
	}
	args, err := schema.Check(string(o.Args))
	if err != nil {
		return nil, &reason.UsageError{Err: fmt.Errorf("the arguments of %s: %w", d.Function, err)}
	}
	server, err := p.Serve(ctx, d, tool.Outside{})
	if err != nil {
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	begin := time.Now()
	reply, err := server.Call(ctx, host.CallRequest{
		Tool: d.Function, Args: args, ID: "call", Run: "test", Key: "test", Workspace: o.Workspace, Timeout: o.Timeout,
	}, progress)
	if err != nil {
		return nil, err
	}
	return &Answer{
		Output: reply.Output, Error: reply.Code, Metadata: reply.Metadata, Writes: reply.Writes, Dropped: reply.Dropped, DurationMs: time.Since(begin).Milliseconds(),
	}, nil
}
