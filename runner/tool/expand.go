package tool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// Selection chooses functions of a program by globs on their own names.
type Selection struct {
	// Include keeps what matches one of them; none keeps all. Exclude then drops
	// what matches one of them.
	Include, Exclude []string
}

// Takes reports whether a function is chosen.
func (s *Selection) Takes(function string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, function)
		return ok && err == nil
	}
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, matches)) && !slices.ContainsFunc(s.Exclude, matches)
}

// Program is the call name of the Tool whose program serves a definition: its own name
// or, for one function of several, that of the Tool they were expanded from.
func (d *Definition) Program() string { return cmp.Or(d.Of, d.Name) }

// maxName is what a model accepts as the name of a tool.
const maxName = 64

// FunctionName is the call name of one function of a Tool that provides several:
// TOOL_FUNCTION with every other character replaced by _. A name that is too long for a
// model ends with a digest of the whole name, so that it is the same in every run.
func FunctionName(tool, function string) string {
	full := tool + "_" + function
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, full)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	return name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}

// Expand replaces the definition of a Tool that provides several functions by one
// definition for each function that it selects, sorted by name. They keep the contract
// of the manifest.
func Expand(d *Definition, found []Function) ([]Definition, error) {
	var all []Definition
	for _, f := range found {
		if !d.Select.Takes(f.Name) {
			continue
		}
		one := *d
		one.Name, one.Of, one.Select = FunctionName(d.Name, f.Name), d.Name, nil
		one.Function, one.Parameters, one.Description, one.Hints = f.Name, f.Parameters, f.Description, f.Hints
		if d.TrustHints {
			one.Spec = f.Hints.apply(one.Spec)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		names := make([]string, len(found))
		for i, f := range found {
			names[i] = f.Name
		}
		return nil, reason.New(reason.ToolError, "tool %q: include and exclude select none of the functions that its program serves: %s", d.Name, listed(names)).
			WithHint("correct include and exclude in spec.tools of the agent: they are globs on these names")
	}
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// mostListed bounds the names in an error.
const mostListed = 20

func listed(names []string) string {
	if len(names) == 0 {
		return "it serves none"
	}
	if len(names) > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
	}
	return strings.Join(names, ", ")
}

// Distinct refuses two definitions that a model would call by one name, and functions
// with the name of a shipped tool: a rule about bash must mean the shell.
func Distinct(tools []Definition) error {
	var errs []error
	seen := map[string]*Definition{}
	for i := range tools {
		d := &tools[i]
		if other := seen[d.Name]; other != nil {
			errs = append(errs, reason.New(reason.ToolError, "%s and %s have one call name, %q", other.origin(), d.origin(), d.Name).
				WithHint("give one of the Tools another spec.callName, or leave one of them out with exclude in spec.tools of the agent"))
			continue
		}
		seen[d.Name] = d
		if _, shipped := builtin.Lookup(d.Name); shipped && d.Of != "" {
			errs = append(errs, reason.New(reason.ToolError, "%s has the call name %q of a shipped tool: rules about that tool would judge another program", d.origin(), d.Name).
				WithHint("give the Tool another spec.callName"))
		}
	}
	return errors.Join(errs...)
}

// origin is what errors call a definition.
func (d *Definition) origin() string {
	if d.Of == "" {
		return fmt.Sprintf("tool %q", d.Name)
	}
	return fmt.Sprintf("function %q of tool %q", d.Function, d.Of)
}

// Hints are what a program claims about a function of its own. People are shown them;
// they decide nothing, unless the manifest of the Tool trusts them.
type Hints struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnly,omitempty"`
	Destructive bool   `json:"destructive,omitempty"`
	Idempotent  bool   `json:"idempotent,omitempty"`
	OpenWorld   bool   `json:"openWorld,omitempty"`
}

// String returns the hints in words; "" for none.
func (h Hints) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		text string
	}{{h.ReadOnly, "only reads"}, {h.Destructive, "may destroy"}, {h.Idempotent, "may be repeated"}, {h.OpenWorld, "reaches outside"}} {
		if w.on {
			words = append(words, w.text)
		}
	}
	return strings.Join(words, ", ")
}

// Claims returns what else a person reads who is asked about a call: what the program of
// the tool says about it, and how to see the content of files that the call only names. ""
// is nothing.
func Claims(tools []Definition) func(message.ToolCall) string {
	all, merge := map[string]string{}, ""
	coding := map[string]*Definition{}
	for i := range tools {
		if builtin.Codes(tools[i].Shipped) {
			coding[tools[i].Name] = &tools[i]
		}
		if text := tools[i].Hints.String(); text != "" {
			all[tools[i].Name] = "its server says: " + text
		}
		if tools[i].Shipped == mergeTool {
			merge = tools[i].Name
		}
	}
	return func(call message.ToolCall) string {
		if call.Tool == merge {
			return shownBy(call)
		}
		if d := coding[call.Tool]; d != nil {
			return codingClaim(d, call)
		}
		return all[call.Tool]
	}
}

// apply makes a contract of hints that the manifest trusts: a function that only reads
// has risk R0, one that may destroy R3.
func (h Hints) apply(s v1alpha1.ToolSpec) v1alpha1.ToolSpec {
	switch {
	case h.ReadOnly:
		s.Risk, s.Category = v1alpha1.RiskR0, v1alpha1.CategoryRead
		s.Effects = slices.DeleteFunc(slices.Clone(s.Effects), func(e v1alpha1.Effect) bool { return e == v1alpha1.EffectWrite || e == v1alpha1.EffectExecute })
		s.Retry = v1alpha1.RetryIdempotent
	case h.Destructive:
		s.Risk = v1alpha1.RiskR3
	}
	if h.Idempotent && !h.Destructive {
		s.Retry = v1alpha1.RetryIdempotent
	}
	return s
}
