package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// Server runs calls: a plugin process, or a launcher that starts a program per
// call.
type Server interface {
	// Call runs one call to its end. A failure of the tool is a Reply; an error
	// means that the tool could not be asked, or that ctx has ended, and then the
	// Reply holds the output so far. What is hidden are files of the workspace, and
	// by their absolute paths those of folders outside it. When the timeout of the
	// call passes, the Reply has code timeout and holds the output so far.
	Call(ctx context.Context, req host.CallRequest, progress func(string)) (Reply, error)
}

// Reply is what a program answered.
type Reply struct {
	// Output is text for the model.
	Output   string
	ExitCode *int
	Signal   string
	Title    string
	Metadata json.RawMessage
	Writes   bool
	// Failed replies carry a code of the closed list.
	Failed bool
	Code   message.ErrorCode
	// Dropped bytes of the output that were not kept.
	Dropped int64
	// Attachments are images and documents for the model to look at.
	Attachments []Attachment
	// Parts are data for other programs.
	Parts []message.DataPart
	// Variables are secrets for later calls, unchecked.
	Variables []host.Variable
	// Record is what the call did; nil where that is not known.
	Record *host.Record
}

// Blobs keep the full text of outputs that had to be cut. PutBlob neither changes
// the bytes nor holds on to them.
type Blobs interface {
	PutBlob(b []byte) (string, error)
	GetBlob(id string) ([]byte, error)
}

// Options are what a Registry needs.
type Options struct {
	// Tools of the run; call names are unique.
	Tools []Definition
	// Serve returns the server of a tool, for a call that may use paths outside
	// the workspace or none. It is called from the goroutine of the call and may
	// wait until the program is ready.
	Serve func(ctx context.Context, d *Definition, beyond Outside) (Server, error)
	// Profile is the containment of a tool by its call name; nil for one that is not
	// contained. Nil: no tool is.
	Profile func(name string) *spec.Profile
	// HostTools answer calls for which no program is started; nil are those of HostTools.
	HostTools []HostTool
	// Subagents starts the agents that calls name; nil: none can be started.
	Subagents Subagents
	// Coders runs the programs of coding agents of others; nil: none can be run.
	Coders Coders
	// Copies returns an ended run that a call has started and that has worked on a copy of
	// the files, by its name; Merge takes over what it has changed. Nil: there is none.
	Copies func(name string) *message.ChildRun
	Merge  Merger
	// Skills are those that the agent may load.
	Skills []skill.Entry
	// Workspace returns the root of the run's files once they are all there.
	Workspace func(ctx context.Context) (string, error)
	Blobs     Blobs
	// Todos returns the todo list of the run, and Inquire asks a person a question of the
	// call of that id. They are for host tools; nil: there is no list, and no person.
	Todos   func() message.Todos
	Inquire func(ctx context.Context, call string, in message.Inquiry) (message.Reply, error)
	// Items are what calls may prepare for publication.
	Items Items
	// Inform shows what a running call says of itself: a title, or metadata, a JSON object.
	// Nil: nobody looks.
	Inform func(call, title string, metadata json.RawMessage)
	// Checks look at files that calls have changed; nil: there are none.
	Checks Checks
	// RecordPrograms asks for what calls of the shipped tools that run commands execute,
	// also where they are not bound: a record of bound calls is always asked for.
	RecordPrograms bool
	// Unreadable returns those of some files, relative to the workspace, that a
	// call must not read though it may read their folder. Nil: it may read all.
	Unreadable func(ctx context.Context, call message.ToolCall, files []string) ([]string, error)
	// Masked returns those of some files that no call may read; Unseen are folders of
	// which no tool may see anything. Both are asked about paths outside the workspace.
	Masked func(ctx context.Context, files []string) ([]string, error)
	Unseen []string
	// Redactor removes secrets from all that programs answer; nil removes nothing.
	Redactor *secret.Redactor
	// Keep hides a value that a result supplies from all that is written, until the end of
	// the run. Nil: no result can supply one.
	Keep func(value string)
	// Space returns how many bytes are left on the disk of the run's files; nil:
	// not known. A call that fills the disk is ended.
	Space func() (int64, bool)
	// Growth bounds what calls add to the run's files; nil: no bound.
	Growth *Growth
	// Run and Agent are ids handed to the programs.
	Run, Agent string
	Now        func() time.Time
}

// Registry is the toolbox of one run.
type Registry struct {
	Options
	byName  map[string]*Definition
	names   []string
	schemas map[string]func() (*Schema, error)
	// supplied are the variables that results have supplied for later calls.
	supplied supplied
}

// NewRegistry returns a toolbox. Schemas are compiled at the first call of a tool.
func NewRegistry(o Options) (*Registry, error) {
	r := &Registry{Options: o, byName: map[string]*Definition{}, schemas: map[string]func() (*Schema, error){}}
	if r.HostTools == nil {
		r.HostTools = HostTools()
	}
	for i := range o.Tools {
		d := &o.Tools[i]
		if r.byName[d.Name] != nil {
			return nil, fmt.Errorf("two tools are called %q", d.Name)
		}
		r.byName[d.Name] = d
		r.names = append(r.names, d.Name)
		r.schemas[d.Name] = sync.OnceValues(func() (*Schema, error) { return NewSchema(d.Parameters) })
	}
	slices.Sort(r.names)
	return r, nil
}

// Specs returns the descriptions for the model, sorted by name, without the
// hidden tools.
func (r *Registry) Specs(hidden []string) []message.ToolSpec {
	specs := make([]message.ToolSpec, 0, len(r.names))
	for _, name := range r.names {
		if !slices.Contains(hidden, name) {
			specs = append(specs, r.byName[name].For())
		}
	}
	return specs
}

// Check turns what the model wrote into a call that the policy can judge.
func (r *Registry) Check(req message.CallRequest) (message.Checked, error) {
	d, repaired, err := r.find(req.Tool)
	if err != nil {
		return message.Checked{}, err
	}
	schema, err := r.schemas[d.Name]()
	if err != nil {
		return message.Checked{}, reason.New(reason.ToolError, "tool %q: %w", d.Name, err)
	}
	args, err := schema.Check(req.Args)
	if err != nil {
		return message.Checked{}, err
	}
	coerced := string(args) != req.Args && strings.TrimSpace(req.Args) != ""
	if args, err = r.arguments(d, args); err != nil {
		return message.Checked{}, &message.CallError{Code: message.CodeSchema, Text: err.Error() + ". Nothing was run; write the whole call again."}
	}
	canonical, err := Canonical(args, d.FreeText...)
	if err != nil {
		return message.Checked{}, badJSON("%v", err)
	}
	sum := sha256.Sum256(append([]byte(d.Name+"\x00"), canonical...))
	return message.Checked{
		Tool: d.Name, Args: args, Repaired: repaired, Coerced: coerced,
		Signature:  hex.EncodeToString(sum[:]),
		Repeatable: d.Spec.Retry == v1alpha1.RetryIdempotent || d.Spec.Retry == v1alpha1.RetryKeyed,
		Exclusive:  d.Spec.Concurrency == v1alpha1.ConcurrencyExclusive,
	}, nil
}

// arguments checks and completes those of shipped tools that a schema cannot describe.
func (r *Registry) arguments(d *Definition, args json.RawMessage) (json.RawMessage, error) {
	if check := argumentChecks[d.Shipped]; check != nil {
		return args, check(args)
	}
	if builtin.Codes(d.Shipped) {
		return coded(d, args)
	}
	if d.Shipped == mergeTool && r.Copies != nil {
		return completed(args, r.Copies)
	}
	return args, nil
}

func (r *Registry) find(name string) (d *Definition, repaired bool, err error) {
	if d := r.byName[name]; d != nil {
		return d, false, nil
	}
	if d := r.byName[repair(name, r.names)]; d != nil {
		return d, true, nil
	}
	text := fmt.Sprintf("there is no tool %q", name)
	if len(r.names) > 0 {
		text += "; the tools are: " + strings.Join(reason.Sorted(name, r.names), ", ")
	}
	return nil, false, &message.CallError{Code: message.CodeUnknownTool, Text: text}
}

// timeoutSlack is the time a program has to answer after its call's timeout
// with what it has; then the call ends without it.
const timeoutSlack = 5 * time.Second

// Run executes a call that was allowed. What the result comes from is known from the
// definition of the tool and the arguments, and not from what its program says.
func (r *Registry) Run(ctx context.Context, call message.ToolCall, progress func(string)) (*message.ToolResult, error) {
	d := r.byName[call.Tool]
	if d == nil {
		return nil, reason.New(reason.Internal, "run call %s: no tool %q", call.ID, call.Tool)
	}
	result, err := r.run(ctx, d, call, progress)
	if result == nil {
		return nil, err
	}
	r.diagnose(ctx, d, call, result)
	result.Origin = d.cameFrom(call.Args)
	for i := range result.Attachments {
		result.Attachments[i].Origin = result.Origin
	}
	return result, err
}

func (r *Registry) run(ctx context.Context, d *Definition, call message.ToolCall, progress func(string)) (*message.ToolResult, error) {
	if result, ok, err := r.answer(ctx, d, call, progress); ok {
		return result, err
	}
	variables, missing := r.variables(d)
	if missing != "" {
		return &message.ToolResult{Code: message.CodeTool, Text: missing, Output: missing}, nil
	}
	server, beyond, err := r.serve(ctx, d, call)
	defer func() { _ = beyond.close(false) }() // an empty file is left at worst
	if result, ok := refused(err); ok {
		return result, nil
	}
	if err != nil {
		// A sandbox cannot show files that could not be prepared: report that
		// error.
		if _, unprepared := r.Workspace(ctx); unprepared != nil {
			err = unprepared
		}
		return notBegun(ctx, err)
	}
	workspace, err := r.Workspace(ctx)
	if err != nil {
		return notBegun(ctx, err)
	}
	timeout := d.Spec.Limits.Timeout.Duration
	limited, cancel := context.WithTimeout(ctx, timeout+timeoutSlack)
	defer cancel()
	limited, full := context.WithCancelCause(limited)
	defer full(nil)
	disks, growth := r.writes(d)
	disks = append(disks, beyond.disks()...)
	stop := watchSpace(limited, full, disks, growth)
	start, shown := r.Now(), r.Redactor.NewProgress()
	req := host.CallRequest{
		Tool: d.function(), Args: call.Args, ID: call.ID, Message: call.Message, Run: r.Options.Run, Session: r.Options.Run, Agent: r.Agent,
		Workspace: workspace, Key: r.Options.Run + "/" + call.ID, Timeout: timeout, MaxOutput: maxExecOutput, Outside: beyond.paths(), Hidden: beyond.Masked,
		Inform: r.inform(call.ID), Variables: variables,
		Binding: r.bound(d, call.Binding, beyond), RecordPrograms: r.records(d),
	}
	reply, err := r.call(limited, d, call, server, req, func(text string) { progress(shown.Show(text)) })
	r.supply(d, req, &reply)
	took := r.Now().Sub(start)
	outgrown := stop()
	if result, ok := refused(err); ok {
		return result, nil
	}
	if err != nil {
		switch {
		case ctx.Err() != nil:
			reply.Record = asked(reply.Record, &req)
			return r.stopped(ctx, d, workspace, reply, took)
		case ended(context.Cause(limited)):
			outgrown = context.Cause(limited)
		case limited.Err() != nil:
			reply.Failed, reply.Code = true, message.CodeTimeout
			reply.Output += fmt.Sprintf("\nno answer within %s (spec.limits.timeout of the tool)", timeout)
		default:
			return nil, fmt.Errorf("tool %q: %w", d.Name, err)
		}
	}
	if outgrown != nil {
		reply.Failed, reply.Code = true, message.CodeOutputLimit
		reply.Output += "\n" + outgrown.Error()
	}
	if err := beyond.close(!reply.Failed); err != nil {
		beyond.notes = append(beyond.notes, "the empty file that was made for the call is still there: "+err.Error())
	}
	beyond.explain(&reply)
	reply.Record = asked(reply.Record, &req)
	return r.result(d, workspace, reply, took)
}

// serve returns the server of a call and the paths outside the workspace that the
// call gets; the second is never nil.
func (r *Registry) serve(ctx context.Context, d *Definition, call message.ToolCall) (Server, *outside, error) {
	none := &outside{}
	if len(call.Outside) == 0 {
		server, err := r.Serve(ctx, d, Outside{})
		return server, none, err
	}
	workspace, err := r.Workspace(ctx)
	if err != nil {
		return nil, none, err
	}
	beyond, err := r.outsideFor(ctx, d, call, workspace)
	if err != nil {
		return nil, none, err
	}
	server, err := r.Serve(ctx, d, beyond.Outside)
	return server, beyond, err
}

// ended reports whether the watch of the disk has ended a call.
func ended(cause error) bool {
	var over *growthError
	return errors.Is(cause, errSpace) || errors.As(cause, &over)
}

// notBegun distinguishes a call under which the run was cancelled before its
// program was asked from a call whose program could not be asked.
func notBegun(ctx context.Context, err error) (*message.ToolResult, error) {
	if ctx.Err() == nil {
		return nil, err
	}
	return &message.ToolResult{Code: message.CodeCancelled, Text: "cancelled: " + whyStopped(ctx) + "; the call did nothing"}, nil
}

// stopped is the result of a call under which the run was cancelled: the output
// so far, and a note that the rest is unknown.
func (r *Registry) stopped(ctx context.Context, d *Definition, workspace string, reply Reply, took time.Duration) (*message.ToolResult, error) {
	reply.Failed, reply.Code = true, message.CodeCancelled
	result, err := r.result(d, workspace, reply, took)
	if err != nil {
		return nil, err
	}
	note := "cancelled: " + whyStopped(ctx) + "; what the call did until then may or may not have happened"
	if reply.Output == "" && reply.Signal == "" {
		result.Text = note
	} else {
		result.Text += "\n" + note
	}
	return result, nil
}

func whyStopped(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return "the run was cancelled"
}

// result is what the model reads: the output, cut to the tool's window, and
// below it the facts that a person would see at a prompt.
func (r *Registry) result(d *Definition, workspace string, reply Reply, took time.Duration) (*message.ToolResult, error) {
	output := strings.ToValidUTF8(reply.Output, "\uFFFD")
	if reply.Dropped > 0 { // its end may be within a secret
		output = r.Redactor.Cut(output)
	} else {
		output = r.Redactor.String(output)
	}
	shown, lines, bytes := d.window().Cut(output)
	result := &message.ToolResult{
		Output: shown, ExitCode: reply.ExitCode, Title: r.Redactor.Cut(reply.Title), Writes: reply.Writes,
		DurationMicros: took.Microseconds(),
	}
	if len(reply.Metadata) > 0 {
		if safe := r.Redactor.JSON(reply.Metadata); json.Valid(safe) {
			result.Metadata = safe
		}
	}
	if bytes > 0 {
		id, err := r.Blobs.PutBlob(bytesOf(output))
		if err != nil {
			return nil, reason.New(reason.Internal, "keep the full output of tool %q: %w", d.Name, err)
		}
		result.Blob = id
	}
	if reply.Failed {
		result.Code = reply.Code
		if result.Code == "" {
			result.Code = message.CodeTool
		}
	}
	refused, err := r.attach(result, reply.Attachments)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", d.Name, err)
	}
	result.Record = r.record(reply.Record)
	result.Text = strings.TrimRight(shown, "\n")
	note := footer(reply.ExitCode, reply.Signal, took, result.Code == message.CodeTimeout, lines, bytes+int(reply.Dropped), result.Blob)
	switch {
	case result.Text == "" && note == "":
		result.Text = "(no output)"
	case result.Text == "":
		result.Text = "(no output)\n" + note
	case note != "":
		result.Text += "\n" + note
	}
	if excess := result.Record.Excess(workspace); excess != "" {
		refused = append(refused, "["+excess+". What was not judged is denied.]")
	}
	refused = append(refused, r.parts(d, result, reply.Parts)...)
	if len(refused) > 0 {
		result.Text += "\n" + strings.Join(refused, "\n")
	}
	return result, nil
}

// bytesOf are the bytes of a text themselves, not a copy: an output may have 10 MB,
// and a blob is only read.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // they are only read
}

// function is the name of the tool inside its program.
func (d *Definition) function() string { return cmp.Or(d.Function, d.Name) }
