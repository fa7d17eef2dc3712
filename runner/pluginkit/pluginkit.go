// Package pluginkit is what the author of a tool works with: it begins one, calls it, holds it against its promises and packs it into an image.
package pluginkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/host/conformance"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/exec"
)

// Program is a tool's program under test.
type Program struct {
	// Command is the program and its arguments. Required. With a slash the program
	// is relative to the current folder, without one it is looked up in PATH;
	// arguments that name files of the current folder are taken for those files.
	Command []string
	// Env are declared variables as NAME=value, besides those every tool gets.
	Env []string
	// Exec is set when it is started for each call, with its arguments on stdin,
	// as a Tool with source.exec is.
	Exec bool
	// Workspace is the folder it works in. Required.
	Workspace string
	// Isolation is None or Sandbox. None is the default because the caller has
	// written the program. Sandbox is without network; the program sees the
	// files that Command names, the workspace, Mounts and /usr, and no other
	// files of the host.
	Isolation v1alpha1.IsolationLevel
	// Mounts are files and folders that a program in a sandbox may read besides, as
	// spec.isolation.mounts of a Tool.
	Mounts []string
}

// What the conformance kit has found out.
type (
	// Report is about a program.
	Report = conformance.Report
	// Check is one promise that was tried.
	Check = conformance.Check
	// Sample is a call of one of the author's own tools.
	Sample = conformance.Sample
)

// TestOptions select what to test.
type TestOptions struct {
	Program
	// Good are calls that must be answered without an error, Slow such that take
	// long: they must end at their deadline and when they are cancelled. For an
	// Exec program the name of the tool is not used.
	Good, Slow []Sample
}

// Test checks whether a program conforms to the contract of a tool. Violations
// are in the report; an error is a *reason.UsageError.
func Test(ctx context.Context, o TestOptions) (*Report, error) {
	p, err := o.prepare()
	if err != nil {
		return nil, err
	}
	launcher, held, err := p.hold()
	if err != nil {
		return nil, err
	}
	if p.Exec {
		report := conformance.RunExec(ctx, conformance.ExecOptions{
			Name: p.Command[0], Good: arguments(o.Good), Slow: arguments(o.Slow),
			Call: func(ctx context.Context, args json.RawMessage, timeout time.Duration) (conformance.ExecReply, error) {
				reply, err := p.exec(ctx, launcher, held, args, timeout)
				return conformance.ExecReply{Output: reply.Output, Failed: reply.Failed, Code: string(reply.Code)}, err
			},
		})
		return report, launcher.Close()
	}
	start := p.start(held)
	report := conformance.Run(ctx, conformance.Options{
		Name: p.Command[0], Contained: held != nil, Launch: launcher.PluginRunner(start), Env: start.Env, Workspace: p.Workspace, Good: o.Good, Slow: o.Slow,
		Schema: func(schema []byte) error { _, err := tool.NewSchema(schema); return err },
	})
	return report, launcher.Close()
}

func arguments(samples []Sample) []json.RawMessage {
	all := make([]json.RawMessage, len(samples))
	for i, s := range samples {
		all[i] = s.Args
	}
	return all
}

// prepare checks the options and makes the paths absolute.
func (p Program) prepare() (Program, error) {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return p, reason.Usagef("no program is named")
	}
	p.Command = slices.Clone(p.Command)
	for i, word := range p.Command { // the program works in another folder
		info, err := os.Stat(word)
		file := err == nil && info.Mode().IsRegular() && !strings.HasPrefix(word, "-")
		if i == 0 && !strings.Contains(word, "/") || i > 0 && !file {
			continue
		}
		if p.Command[i], err = filepath.Abs(word); err != nil {
			return p, reason.Usagef("program %s: %w", word, err)
		}
	}
	for _, kv := range p.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return p, reason.Usagef("environment variable %q is not of the form NAME=value", kv)
		}
	}
	if len(p.Mounts) > 0 && p.Isolation != v1alpha1.IsolationSandbox {
		return p, reason.Usagef("mounts are for isolation level Sandbox: at None a program sees everything")
	}
	folder, err := filepath.Abs(p.Workspace)
	if err != nil {
		return p, reason.Usagef("workspace %s: %w", p.Workspace, err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return p, reason.Usagef("workspace %s is not a folder", p.Workspace)
	}
	p.Workspace = folder
	return p, nil
}

// hold returns what starts the program, and how it is contained: nil is not.
func (p Program) hold() (*sandbox.Launcher, *spec.Profile, error) {
	switch p.Isolation {
	case "", v1alpha1.IsolationNone:
		return sandbox.New(sandbox.Options{AllowUnsandboxed: true}), nil, nil
	case v1alpha1.IsolationSandbox:
	default:
		return nil, nil, reason.Usagef("isolation level %q: a program is tried at None or Sandbox", p.Isolation)
	}
	d := tool.Definition{Name: p.name(), Spec: v1alpha1.ToolSpec{
		WorkspaceAccess: v1alpha1.AccessReadWrite,
		Network:         v1alpha1.Network{Mode: v1alpha1.NetworkNone}, Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox},
	}, Facts: tool.Facts{Command: p.Command}}
	for _, path := range p.Mounts {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, nil, reason.Usagef("mount %s: %w", path, err)
		}
		d.Spec.Isolation.Mounts = append(d.Spec.Isolation.Mounts, v1alpha1.Mount{Path: whole, Access: v1alpha1.MountReadOnly})
	}
	profiles, err := tool.Profiles([]tool.Definition{d}, tool.Place{Workspace: p.Workspace})
	if err != nil {
		return nil, nil, err
	}
	launcher := sandbox.New(sandbox.Options{})
	if err := launcher.Require(d.Name, p.Isolation, v1alpha1.NetworkNone); err != nil {
		return nil, nil, errors.Join(err, launcher.Close())
	}
	return launcher, profiles[d.Name], nil
}

// name is what a tool is called that has no name yet.
func (p Program) name() string { return filepath.Base(p.Command[0]) }

func (p Program) start(held *spec.Profile) sandbox.Spec {
	return sandbox.Spec{Argv: p.Command, Env: tool.HeldEnvironment(held, p.Env), Dir: p.Workspace, Profile: held}
}

// exec starts an Exec program for one call, as a run does.
func (p Program) exec(ctx context.Context, launcher *sandbox.Launcher, held *spec.Profile, args json.RawMessage, timeout time.Duration) (tool.Reply, error) {
	name, kinds := p.name(), tool.Kinds{exec.Kind()}
	o := tool.PoolOptions{Site: tool.NewSite(tool.SiteOptions{Kinds: kinds, Launcher: launcher}), Dir: p.Workspace, Env: map[string][]string{name: p.Env}}
	if held != nil {
		o.Profiles = map[string]*spec.Profile{name: held}
	}
	pool := tool.NewPool(o)
	d, err := kinds.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{CallName: name, Source: v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: p.Command}}}})
	if err != nil {
		return tool.Reply{}, err
	}
	server, err := pool.Serve(ctx, &d, tool.Outside{})
	if err != nil {
		return tool.Reply{}, err
	}
	reply, err := server.Call(ctx, host.CallRequest{Tool: name, Args: args, ID: "test", Run: "test", Key: "test", Workspace: p.Workspace, Timeout: timeout}, func(string) {})
	return reply, errors.Join(err, pool.Close())
}

// CallOptions are the tool to call and its arguments.
type CallOptions struct {
	Program
	// Tool of the program; an Exec program is one itself. Required otherwise.
	Tool string
	// Args is a JSON object; default an empty one.
	Args json.RawMessage
	// Timeout of the call; default 2 minutes.
	Timeout time.Duration
	// Answers are the answers of a person to the tool's questions, in their
	// order. When none is left, the question is not answered.
	Answers []string
	// Progress is called with what the tool shows before its result. Optional.
	Progress func(text string)
}

// Answer is what a call came to.
type Answer struct {
	Output string `json:"output"`
	// Error is why the call failed, one of a tool's codes; "" when it did not.
	Error      message.ErrorCode `json:"error"`
	ExitCode   *int              `json:"exitCode"`
	Signal     string            `json:"signal"`
	Title      string            `json:"title"`
	Metadata   json.RawMessage   `json:"metadata"`
	Writes     bool              `json:"writes"`
	Dropped    int64             `json:"dropped"`
	DurationMs int64             `json:"durationMs"`
	// Attachments are the files that the call returned.
	Attachments []Attached `json:"attachments,omitempty"`
	// Variables are those that the result supplies for later calls.
	Variables []Supplied `json:"variables,omitempty"`
}

// Supplied is a variable that a result supplies, without its value. Wrong is why a run would
// refuse it, whatever the manifest lists; "" if it would not.
type Supplied struct {
	Name  string `json:"name"`
	Wrong string `json:"wrong,omitempty"`
}

func supplied(variables []host.Variable) (all []Supplied) {
	for _, v := range variables {
		s := Supplied{Name: v.Name}
		if err := tool.CheckVariable(v); err != nil {
			s.Wrong = err.Error()
		}
		all = append(all, s)
	}
	return all
}

// Attached is a file that a call returned. Type is what the program claims, Wrong why a
// run would not show the file to a model; "" if it would.
type Attached struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Size  int    `json:"size"`
	Wrong string `json:"wrong,omitempty"`
}

func attached(files []host.Attachment) (all []Attached) {
	for _, f := range files {
		a := Attached{Name: f.Name, Type: f.Type, Size: len(f.Data)}
		if _, err := tool.MediaType(f.Data); err != nil {
			a.Wrong = err.Error()
		}
		all = append(all, a)
	}
	return all
}

// defaultCallTimeout is the default of a Tool without a timeout.
const defaultCallTimeout = 2 * time.Minute

// Call calls a tool once, as a run does but without a policy or a journal. Its errors are a *reason.UsageError, or carry the reason why the tool could
// not be asked.
func Call(ctx context.Context, o CallOptions) (*Answer, error) {
	p, err := o.prepare()
	if err != nil {
		return nil, err
	}
	if len(o.Args) == 0 {
		o.Args = json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(o.Args, &object); err != nil || object == nil {
		return nil, reason.Usagef("the arguments are no JSON object: %s", head(o.Args)).WithHint(`for example --args '{"path": "README.md"}'`)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultCallTimeout
	}
	launcher, held, err := p.hold()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	var answer *Answer
	if p.Exec {
		var reply tool.Reply
		if reply, err = p.exec(ctx, launcher, held, o.Args, o.Timeout); err == nil {
			answer = &Answer{Output: reply.Output, Error: reply.Code, ExitCode: reply.ExitCode, Signal: reply.Signal, Writes: reply.Writes, Dropped: reply.Dropped}
		}
	} else {
		answer, err = p.call(ctx, launcher, held, o)
	}
	if err = errors.Join(err, launcher.Close()); err != nil {
		return nil, err
	}
	answer.DurationMs = time.Since(begin).Milliseconds()
	return answer, nil
}

func head(b []byte) string {
	const most = 80
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// call calls a tool of a plugin.
func (p Program) call(ctx context.Context, launcher *sandbox.Launcher, held *spec.Profile, o CallOptions) (*Answer, error) {
	plugin, err := host.Start(ctx, host.Options{Name: p.Command[0], Launch: launcher.PluginRunner(p.start(held))})
	if err != nil {
		hint := "a program that is started for each call is called with --exec; what a plugin must do is in docs/plugins.md"
		if _, gone := os.Stat(p.Command[0]); gone != nil && strings.Contains(p.Command[0], "/") {
			hint = "build the program, or name one that is there"
		}
		return nil, reason.New(reason.ToolError, "start the program: %w", err).WithHint("%s", hint)
	}
	defer func() { _ = plugin.Close(context.WithoutCancel(ctx)) }() // the launcher's end reports what is left
	if err := serves(plugin, o.Tool); err != nil {
		return nil, err
	}
	answers := make(chan string, len(o.Answers))
	for _, a := range o.Answers {
		answers <- a
	}
	res, err := plugin.Call(ctx, host.CallRequest{
		Tool: o.Tool, Args: o.Args, ID: "call", Run: "call", Key: "call", Workspace: p.Workspace, Timeout: o.Timeout,
		Ask: func(context.Context, host.Question) (string, error) {
			select {
			case said := <-answers:
				return said, nil
			default:
				return "", errors.New("no answer is left")
			}
		},
	}, func(e host.Event) {
		if e.Progress != "" && o.Progress != nil {
			o.Progress(e.Progress)
		}
	})
	if err != nil {
		return nil, reason.New(reason.ToolError, "call tool %q: %w", o.Tool, err)
	}
	return &Answer{
		Output: res.Text, Error: message.ErrorCode(res.Code), ExitCode: res.ExitCode, Signal: res.Signal, Title: res.Title,
		Metadata: res.Metadata, Writes: res.Writes, Dropped: res.Dropped, Attachments: attached(res.Attachments), Variables: supplied(res.Variables),
	}, nil
}

// serves refuses a tool that the program does not serve, and lists those that
// it does.
func serves(plugin *host.Plugin, name string) error {
	var names []string
	for _, t := range plugin.Tools() {
		if t.Name == name {
			return nil
		}
		names = append(names, t.Name)
	}
	have := "it serves: " + strings.Join(names, ", ")
	if name == "" {
		return reason.Usagef("no tool of the program is named").WithHint(have)
	}
	return reason.Usagef("the program serves no tool %q", name).WithHint(have)
}
