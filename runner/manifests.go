package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/policy/policytest"
	"agentctl.dev/agentctl/runner/tool"
)

// ValidateOptions say what to look at.
type ValidateOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
}

// Report is what a validation found.
type Report struct {
	Findings manifest.Findings
	// Documents that were read.
	Documents int
}

// HasErrors says whether the manifests may not be used.
func (r *Report) HasErrors() bool { return r.Findings.HasErrors() }

// Write prints at most limit findings as a compiler does.
func (r *Report) Write(w io.Writer, limit int) error { return r.Findings.Write(w, limit) }

// Validate reads manifests and reports all mistakes at once. It starts no
// program and changes nothing.
func Validate(ctx context.Context, o ValidateOptions) (*Report, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	set, _, found := admission.Read(ctx, o.Paths, o.Stdin, registries().Admission(admission.Options{Cases: true, Programs: true}))
	return &Report{Findings: found, Documents: len(set.Documents) + len(set.Cases)}, nil
}

// Judge validates objects that are in no file, whose paths must be absolute. The position
// of a finding names its document.
func Judge(ctx context.Context, documents []Document, shared *Shared) manifest.Findings {
	_, _, found := plan.AdmitDocuments(ctx, documents, registries().Admission(admission.Options{Policies: shared.rules()}))
	return found
}

// IsRelativePath reports whether a finding is about a path that is not absolute.
func IsRelativePath(f manifest.Finding) bool { return strings.HasPrefix(f.Message, plan.RelativePath) }

// PolicyTestOptions say which cases of policies are judged.
type PolicyTestOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Only picks cases by name. Optional.
	Only *regexp.Regexp
	// Mutate tries which mistakes in a policy its cases notice.
	Mutate bool
}

// TestPolicies judges the cases of all policies in manifests, in spec.tests and
// beside them in files that end in tests.yaml. Nothing is run. Its errors are an
// *InvalidError or a *reason.UsageError, or about the machine.
func TestPolicies(ctx context.Context, o PolicyTestOptions) (*policytest.Report, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, registries().Admission(admission.Options{Cases: true}))
	if found.HasErrors() {
		return nil, &InvalidError{Findings: found}
	}
	opts := policytest.Options{Only: o.Only, Mutate: o.Mutate, Clock: time.Now, Agents: map[string]policy.Agent{}}
	var err error
	if opts.Tools, err = catalog.PolicyTools(); err != nil {
		return nil, err
	}
	if opts.Check, err = argumentCheck(opts.Tools); err != nil {
		return nil, err
	}
	for name, a := range catalog.Agents {
		opts.Agents[name] = policy.Agent{Name: name, Namespace: a.Object.Namespace, Labels: a.Object.Labels, Mode: string(a.Object.Spec.Mode)}
	}
	subjects := policySubjects(catalog)
	if !slices.ContainsFunc(subjects, func(s policytest.Subject) bool { return len(s.Cases) > 0 }) {
		return nil, reason.Usagef("the manifests hold no case of a policy").WithHint("write cases in spec.tests of the Policy, or beside it in a file NAME-tests.yaml")
	}
	report, err := policytest.Run(ctx, subjects, opts)
	if err == nil && report.Cases == 0 {
		return nil, reason.Usagef("no case has a name that matches %s", o.Only)
	}
	return report, err
}

// policySubjects are the policies that were declared, and shipped ones that
// somebody has written cases for.
func policySubjects(c *admission.Catalog) []policytest.Subject {
	var all []policytest.Subject
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		e := c.Policies[name]
		s := policytest.Subject{Policy: e.Object, Compiled: c.CompiledPolicy(name), Where: e.Doc.Locate}
		for _, from := range append([]admission.Entry[v1alpha1.Policy]{e}, c.Cases[name]...) {
			for i, t := range from.Object.Spec.Tests {
				s.Cases = append(s.Cases, policytest.Case{PolicyTest: t, Position: from.Doc.Locate(manifest.Index("spec.tests", i))})
			}
		}
		if !c.Shipped(name) || len(c.Cases[name]) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// argumentCheck holds arguments against the schemas of tools, as a run does
// before a call is judged.
func argumentCheck(tools []policy.Tool) (func(string, json.RawMessage) error, error) {
	schemas := map[string]*tool.Schema{}
	for i := range tools {
		if len(tools[i].Schema) == 0 {
			continue
		}
		s, err := tool.NewSchema(tools[i].Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", tools[i].Name, err)
		}
		schemas[tools[i].Name] = s
	}
	return func(name string, args json.RawMessage) error {
		s, ok := schemas[name]
		if !ok {
			return nil
		}
		_, err := s.Check(string(args))
		return err
	}, nil
}
