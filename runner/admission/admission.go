// Package admission decides whether a manifest may enter.
//
// It finds every mistake of a set of manifests at once, as a compiler does, and
// resolves what it admits into the immutable plan of one run.
package admission

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
)

// Options set how much is checked.
type Options struct {
	// SkipExpressions skips what has to be compiled as CEL: policies, the
	// conditions of scripts and the CEL rules of the schemas. A caller that only
	// lists or converts manifests saves the time.
	SkipExpressions bool
	// Elsewhere admits names that lead to nothing in the set: what they mean may
	// be in a control plane already, or come later.
	Elsewhere bool
	// Modelless admits agents whose model is not declared: a plan runs in its place.
	Modelless bool
	// Cases are read from files of their own, too. A run does not need them.
	Cases bool
	// SkipTests skips what the Tests of the set say, which a run does not need either.
	SkipTests bool
	// Programs are looked for on this host, and a warning names those that are
	// missing. A run finds out by starting them.
	Programs bool
	// Strict makes errors of warnings, and reports where a skill departs from the
	// specification although every part of it can be used here.
	Strict bool
	// Ahead is called when everything but the expressions has been checked and
	// no error was found. Slow work without side effects can begin while the
	// expressions are compiled. The manifests are not admitted yet. Optional.
	Ahead func(*Catalog)
	// Models are the providers of models, which check what only they understand.
	Models model.Registry
	// Images returns the folder on this host with the files of an image. nil: the images
	// of skills are not looked at.
	Images func(ref string) (dir string, err error)
	// Tools are the kinds of tool sources, which know the facts that follow from
	// a source.
	Tools tool.Kinds
	// RunPolicies are names of policies that narrow the run, besides those of the
	// manifests.
	RunPolicies []string
	// Policies that other runs of this process have compiled already. Optional.
	Policies *policy.Shared
}

// Read loads manifests and judges them; the findings of both are in one sorted
// list. What is cold at a start is warmed up while files are read: that takes
// about as long.
func Read(ctx context.Context, paths []string, stdin io.Reader, opts Options) (*manifest.Set, *Catalog, manifest.Findings) {
	var warm sync.WaitGroup
	if !opts.SkipExpressions {
		warm.Go(warmUp)
		warm.Go(func() {
			_, _ = anyShipped() // the caller that needs it gets the error
			if opts.Ahead != nil {
				_, _ = json.Marshal(Plan{}) // creates the encoders that a run needs to write its plan
			}
		})
	}
	set, found := manifest.Load(ctx, paths, stdin)
	if opts.Cases {
		found = append(found, set.ReadCases(ctx)...)
	}
	warm.Wait()
	catalog, more := Admit(set, opts)
	found = append(found, more...)
	found.Sort()
	return set, catalog, found
}

// Admit checks a set of manifests. The catalog has every object that could be
// read, also the invalid ones: it may be used for a run only when the findings
// have no error.
func Admit(set *manifest.Set, opts Options) (*Catalog, manifest.Findings) {
	a := &admitter{opts: opts, catalog: newCatalog()}
	a.catalog.kinds, a.catalog.images = opts.Tools, opts.Images
	for _, d := range set.Documents {
		a.enter(d)
	}
	a.presets()
	a.shippedPolicies(set.Cases)
	a.namespaces(set.Documents)
	for _, d := range set.Documents {
		if d.Kind != v1alpha1.KindTest || !opts.SkipTests {
			a.document(d)
		}
	}
	for _, d := range set.Cases {
		a.caseFile(d)
	}
	a.cycles()
	if opts.Strict {
		a.strict()
	}
	if opts.Ahead != nil && !a.found.HasErrors() {
		opts.Ahead(a.catalog)
	}
	if !opts.SkipExpressions {
		a.expressions(set.Documents)
	}
	a.found.Sort()
	return a.catalog, a.found
}

// admitter is one admission.
type admitter struct {
	opts    Options
	catalog *Catalog
	found   manifest.Findings
	// replaced are the shipped policies that a manifest takes the place of.
	replaced map[string]bool
	// records are the cassettes of tests, with the case that each is of.
	records map[string]string
}

func (a *admitter) add(f manifest.Finding) {
	if f.Rule == "" && f.Severity == manifest.Warning {
		f.Rule = manifest.RuleDoubtful
	}
	if a.opts.Strict {
		f.Severity = manifest.Error
	}
	a.found = append(a.found, f)
}

func (a *admitter) document(d *manifest.Document) {
	a.envelope(d)
	switch obj := d.Object.(type) {
	case *v1alpha1.Agent:
		a.agent(d, obj)
	case *v1alpha1.Model:
		a.model(d, obj)
	case *v1alpha1.Tool:
		a.tool(d, obj)
	case *v1alpha1.Policy:
		a.policy(d, obj)
	case *v1alpha1.Skill:
		a.skill(d, obj)
	case *v1alpha1.Workspace:
		a.workspace(d, "spec", &obj.Spec.WorkspaceSpec)
		a.apply(d, &obj.Spec)
	case *v1alpha1.Run:
		a.run(d, obj)
	case *v1alpha1.Test:
		a.test(d, obj)
	}
	a.pending(d)
}

// builtinTool is the name of a shipped tool in messages. There are no others
// elsewhere.
const builtinTool = "built-in tool"

// reference reports a name that leads nowhere. An empty one has been reported
// as missing already.
func (a *admitter) reference(d *manifest.Document, path, kind, name string, known []string) bool {
	if name == "" || slices.Contains(known, name) {
		return true
	}
	if a.opts.Elsewhere && kind != builtinTool {
		return true
	}
	f := d.Errorf(path, "%s %q not found", kind, name).With(manifest.Suggest(name, known))
	if f.Suggestion == "" {
		f.Suggestion = listed(kind, known)
	}
	a.add(f)
	return false
}
