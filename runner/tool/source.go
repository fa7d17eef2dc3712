package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Kind describes one kind of tool program, which is one field of spec.source:
// everything that the rest of the project needs to know about it. Each
// implementation returns one, and runner/tool/source/sources lists them. No
// other package depends on the kind of a source.
type Kind struct {
	// Name is the field of spec.source.
	Name string
	// Level is the isolation that comes with the source; "" is that of the host's
	// sandbox.
	Level v1alpha1.IsolationLevel
	// Facts returns what follows from a tool's manifest. It is called for tools
	// of this kind only. An error means that the program does not exist; the
	// known facts are returned with the error.
	Facts func(s *v1alpha1.ToolSpec) (Facts, error)
	// Open returns what starts and asks the programs of a run. It starts nothing.
	// Nil: this version does not start programs of this kind, or Isolate does.
	Open func(p *Pool) Source
	// Isolate returns the isolation that comes with the source, which opens it. It
	// starts nothing. It is set instead of Open where there is a Level.
	Isolate func(at *Site) Isolation
}

// startable reports whether this version starts programs of the kind.
func (k *Kind) startable() bool { return k.Open != nil || k.Isolate != nil }

// Facts are what the program needs to know about the source of a tool. They are
// data: computed once, when the tool is defined, and the same for every run.
type Facts struct {
	// Kind is the field of spec.source; "" when none is given. Rules read it as
	// tool.source.
	Kind string
	// Startable reports whether this version starts programs of that kind.
	Startable bool
	// Function is what the program calls the tool; "" is the call name.
	Function string
	// Command is a program of this host and its arguments; nil for a tool without one.
	// A sandbox shows the files that it names, and the tools of the run cannot
	// change them.
	Command []string
	// Image is the image that the program comes from, as the manifest names it; "" for others.
	Image string
	// CommandField is the field of the source that holds the command; "" is command.
	CommandField string
	// Describes reports whether the program can be asked which functions it serves.
	// What it answers is pinned: a program that answers otherwise later is refused.
	Describes bool
	// Shipped is the name of a shipped tool; "" for all others, whose programs
	// are started only when they can no longer reach files that the policy hides
	// from them.
	Shipped string
	// Together reports whether tools of this kind share one process and one sandbox
	// where they ask for nothing of their own.
	Together bool
	// Host reports whether the runner answers the calls itself, and no program is started.
	Host bool
	// Level is the isolation that comes with the source; "" is that of the host's
	// sandbox.
	Level v1alpha1.IsolationLevel
	// WritesDisk reports whether calls can fill the disk of the run's files though
	// they have no access to those.
	WritesDisk bool
	// Remote is the host of a server that answers the calls elsewhere: no program is
	// started for them, and nothing on this host contains what they do. "" for programs.
	Remote string
	// TrustHints reports whether the manifest makes the contract of a function of what
	// its program claims about it.
	TrustHints bool
	// Secrets are what the source needs besides the variables of the manifest.
	Secrets []Secret
	// Obtains reports whether the source is given further secrets during a run, such as
	// access tokens.
	Obtains bool
	// Supplies reports whether results of the program may hold variables for later calls,
	// Receives whether its calls can be given such variables.
	Supplies, Receives bool
	// Faults are what is wrong with the source beyond what its schema can express.
	Faults []Fault
	// Agent is the agent that a call starts; "" for a program.
	Agent string
	// Coding says which coding agents of others calls may run; nil are the defaults.
	Coding *v1alpha1.CodingSource

	// KeepHead keeps the beginning of a long output, not its end.
	KeepHead bool
	// FreeText are arguments that do not change what a call does.
	FreeText []string
	// Search reports whether a call reads all files of a folder and names those it
	// shows in its metadata: files that may not be read are left out of its result.
	Search bool
	// Creates reports whether a call may create the file that it names.
	Creates bool
	// URL is the argument whose server answers the call through the program; "" where a
	// call names none.
	URL string
	// Server is the server, as in https://search.example:443, that answers all calls
	// through the program; "" where a call decides, or nothing is asked.
	Server string
}

// Secret is a value that a source needs, by a name of its own.
type Secret struct {
	Name string
	// Field of the manifest that refers to it.
	Field string
	From  v1alpha1.ValueFrom
}

// Fault is a field of a source that cannot have its value.
type Fault struct {
	// Field is its path in the manifest.
	Field string
	// Problem is what is wrong, Hint what to write instead.
	Problem, Hint string
}

// Contained reports whether the source brings its own isolation, so that no sandbox
// of the host is built for it.
func (f *Facts) Contained() bool { return f.Level != "" }

// Source starts, asks and ends the programs of one kind in one run. Its methods are
// called by several goroutines.
//
// A source that prepares something beforehand has a method Begin besides; see
// Pool.Begin.
type Source interface {
	// Start starts the program of a tool in the background, if the program
	// serves many calls. An error is reported to the call that needs the
	// program.
	Start(ctx context.Context, d *Definition)
	// Describe returns the functions that the program of a tool serves: what a
	// model may call. It is called before the policy has decided what tools may
	// see, so the program sees no files of the run.
	Describe(ctx context.Context, d *Definition) ([]Function, error)
	// Serve returns what answers the calls of a tool, once it is ready. A call that may
	// use paths outside the workspace is given a server of its own, if the shared one
	// does not see them.
	Serve(ctx context.Context, d *Definition, beyond Outside) (Server, error)
	// Close lets go of what the source holds on this host. Processes have ended.
	Close() error
}

// Function is one function that a program serves, as the program describes it.
type Function struct {
	// Name inside the program.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters json.RawMessage
	// Hints are claims of the program.
	Hints Hints
}

// Outside is what one call may use outside the workspace.
type Outside struct {
	Paths []message.OutsidePath
	// Masked are absolute paths in the folders among them that the call must not read.
	Masked []string
}

// Kinds are the kinds of sources of a program.
type Kinds []Kind

// Of returns the kind of a name.
func (k Kinds) Of(name string) (*Kind, bool) {
	i := slices.IndexFunc(k, func(kind Kind) bool { return kind.Name == name })
	if i < 0 {
		return nil, false
	}
	return &k[i], true
}

// Facts returns what follows from the source of a tool.
func (k Kinds) Facts(s *v1alpha1.ToolSpec) (Facts, error) {
	name := s.Source.Kind()
	kind, ok := k.Of(name)
	if !ok {
		return Facts{Kind: name}, nil
	}
	f, err := kind.Facts(s)
	f.Kind, f.Level, f.Startable = name, cmp.Or(kind.Level, f.Level), kind.startable()
	return f, err
}

// Define makes a definition of a Tool with all defaults and the contract of its
// source filled in, as in a plan.
func (k Kinds) Define(t *v1alpha1.Tool) (Definition, error) {
	facts, err := k.Facts(&t.Spec)
	if err != nil {
		return Definition{}, fmt.Errorf("tool %q: %w", t.Name, err)
	}
	d := Definition{Name: t.Spec.CallName, Object: t.Name, Description: t.Spec.Description, Spec: *t.Spec.DeepCopy(), Facts: facts, Annotations: t.Annotations}
	if t.Spec.Parameters != nil {
		d.Parameters = t.Spec.Parameters.Raw
	}
	if t.Spec.Source.Several() {
		d.Select = &Selection{}
	}
	return d, nil
}

// Unsupported is the error for a source this version cannot start; nil for
// those it can.
func Unsupported(d *Definition) error {
	if d.Startable || d.Kind == "" {
		return nil
	}
	return reason.New(reason.IsolationUnavailable, "tool %q: this version starts no tools with source.%s", d.Name, d.Kind).
		WithHint("use source.plugin, source.exec, source.container or source.builtin, or take the tool out of the agent's spec.tools")
}

// Command is the command of a manifest as a fact: never nil, even where the manifest
// names nothing.
func Command(words []string) []string { return append([]string{}, words...) }
