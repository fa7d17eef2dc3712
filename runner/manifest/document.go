package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/v1alpha1"
	kjson "sigs.k8s.io/json"
)

// Document is one object of a manifest.
type Document struct {
	// File and Line are where the document begins.
	File string
	Line int
	// Dir is the absolute folder that relative paths of the document start from.
	Dir string
	// Files that the document was built from, as absolute paths; none where it was
	// read from File.
	Files []string

	APIVersion, Kind, Name, Namespace string

	// JSON is the object with its defaults, without what could not be used;
	// Value is the same, decoded.
	JSON  []byte
	Value map[string]any
	// Object is a pointer to the type of the kind, such as *v1alpha1.Agent; nil for a kind
	// that nobody declares.
	Object any
	// Broken is set when some of the document was left out because of an error.
	Broken bool
	// Validations are the CEL rules of the kind's schema, with the values to
	// hold against them.
	Validations []Validation

	text *text
	// faults are the paths of the errors found so far; secrets are values that
	// must not be shown.
	faults  []string
	secrets []string
}

// Validation is one x-kubernetes-validations rule and the value it is about.
type Validation struct {
	// Path of the value, and of the field the rule blames.
	Path, Field string
	// Rule in CEL over self; Message is the mistake when it is false.
	Rule, Message string
	Self          any
}

// newDocument decodes one document. It returns nil for one that holds no object.
func newDocument(of *piece, p patterns) (*Document, Findings) {
	src, c := of.source, of.chunk
	d := &Document{File: src.name, Line: c.line, Dir: src.dir, Files: src.files, text: newText(src.name, c)}
	value, errs := decode(d.text)
	if value == nil && len(errs) > 0 {
		return nil, errs
	}
	obj, ok := value.(map[string]any)
	if !ok {
		return nil, append(errs, d.errorAt("", "a manifest is a mapping, not %s", describe(value)))
	}
	if of.cases {
		errs = append(errs, d.caseKeys(obj)...)
		obj, d.text.cases = asPolicy(obj), true
	}
	d.Value = obj
	d.Broken = errs.HasErrors()
	d.APIVersion, _ = obj["apiVersion"].(string)
	d.Kind, _ = obj["kind"].(string)
	errs = append(errs, d.shape(obj, p)...)
	if meta, ok := obj["metadata"].(map[string]any); ok {
		d.Name, _ = meta["name"].(string)
		d.Namespace, _ = meta["namespace"].(string)
	}
	if err := d.object(obj); err != nil && len(errs) >= MaxFindings {
		return d, errs // some of what is wrong is still in the object
	} else if err != nil {
		errs = append(errs, d.Errorf("", "%v", err))
		d.Broken = true
	}
	return d, errs
}

// Written returns the object as its author wrote it: without defaults, and with every
// field, also one that could not be used. It is decoded again, so the caller may change
// it.
func (d *Document) Written() map[string]any {
	value, _ := decode(d.text) // its mistakes have been reported
	obj, _ := value.(map[string]any)
	return obj
}

// shape holds the object against the schema of its kind, takes out what does
// not fit, and fills in the defaults.
func (d *Document) shape(obj map[string]any, p patterns) Findings {
	kind, known := crds.Kind(d.Kind)
	if !known {
		return nil
	}
	s := &shape{doc: d, patterns: p}
	delete(obj, "status") // written by the program that runs the object, never by its author
	s.object("", wholeSchema(kind.Schema), obj)
	for i, f := range s.found {
		if f.Severity == Error {
			d.faults, d.Broken = append(d.faults, f.Path), true
		}
		if len(d.secrets) > 0 { // one that comes before the secret
			s.found[i] = d.at(f, f.Position)
		}
	}
	crds.ApplyDefaults(d.Kind, obj)
	return s.found
}

// object makes the typed object out of what is left.
func (d *Document) object(obj map[string]any) error {
	target := newObject(d.Kind)
	if target == nil {
		return nil
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(raw, target)
	d.JSON, d.Object = raw, target
	if err == nil && len(strict) > 0 && !d.Broken {
		// The schema has let through what the Go type does not know: the two differ.
		err = strict[0]
	}
	if err != nil {
		return fmt.Errorf("decode the object: %w", err)
	}
	return nil
}

func newObject(kind string) any {
	switch kind {
	case v1alpha1.KindAgent:
		return &v1alpha1.Agent{}
	case v1alpha1.KindModel:
		return &v1alpha1.Model{}
	case v1alpha1.KindTool:
		return &v1alpha1.Tool{}
	case v1alpha1.KindPolicy:
		return &v1alpha1.Policy{}
	case v1alpha1.KindSkill:
		return &v1alpha1.Skill{}
	case v1alpha1.KindWorkspace:
		return &v1alpha1.Workspace{}
	case v1alpha1.KindRun:
		return &v1alpha1.Run{}
	case v1alpha1.KindTest:
		return &v1alpha1.Test{}
	}
	return nil
}

// String names the document as kind/name.
func (d *Document) String() string { return strings.ToLower(d.Kind) + "/" + d.Name }

// Locate returns the position of a field's value, for example of spec.tools[1].name. For a
// missing field it is that of the parent's key.
func (d *Document) Locate(path string) Position {
	at := d.text.find(path)
	if at.key != nil && (!at.exact || at.value.Line != at.key.Line) {
		return d.text.position(at.key)
	}
	return d.text.position(at.value)
}

// Holds reports whether the document has a field, as its author wrote it.
func (d *Document) Holds(path string) bool { return d.text.find(path).exact }

// LocateKey returns the place of a field's name.
func (d *Document) LocateKey(path string) Position {
	at := d.text.find(path)
	if at.key != nil {
		return d.text.position(at.key)
	}
	return d.text.position(at.value)
}

// Errorf returns an error about the value at a path.
func (d *Document) Errorf(path, format string, args ...any) Finding {
	f := d.errorAt(path, format, args...)
	if d.Kind != "" && newObject(d.Kind) != nil {
		f.See = "agentctl explain " + fieldPath(d.Kind, path)
	}
	return f
}

// Warnf returns a warning about the value at a path.
func (d *Document) Warnf(path, format string, args ...any) Finding {
	f := d.Errorf(path, format, args...)
	f.Severity = Warning
	return f
}

// KeyErrorf returns an error about the name of a field.
func (d *Document) KeyErrorf(path, format string, args ...any) Finding {
	f := d.Errorf(path, format, args...)
	return d.at(f, d.LocateKey(path))
}

func (d *Document) errorAt(path, format string, args ...any) Finding {
	f := Finding{Severity: Error, Path: path, Message: fmt.Sprintf(format, args...)}
	return d.at(f, d.Locate(path))
}

func (d *Document) at(f Finding, p Position) Finding {
	f.Position = p
	before, rest := cut(d.text.lineAt(p.Line), p.Col)
	f.Snippet, f.caret = snippet(d.conceal(last(before, window)), d.conceal(first(rest, window)))
	return f
}

// window is how much of a line is looked at on either side of a place; a
// document may be one line of a megabyte.
const window = 4096

func first(s string, n int) string { return s[:min(len(s), n)] }

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// conceal takes credentials out of a part of a line.
func (d *Document) conceal(s string) string {
	for _, secret := range d.secrets {
		if head := first(secret, window/4); len(head) < len(secret) {
			s, _, _ = strings.Cut(s, head) // too long to be seen whole: nothing behind it is shown
		}
		s = strings.ReplaceAll(s, secret, hiddenText)
	}
	return credential().ReplaceAllStringFunc(s, func(found string) string {
		parts := credential().FindStringSubmatch(found)
		if name, value := strings.ToLower(parts[1]), strings.TrimSpace(parts[2]); strings.Contains(name, "token") && amount().MatchString(value) {
			return found // maxToken is a slip of the pen, and its number is what helps
		}
		return parts[1] + hiddenText
	})
}

// amount is a number of tokens, and too short for a credential.
var amount = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9][0-9_]{0,8}[kKmM]?$`) })

// hiddenText replaces a credential.
const hiddenText = "***"

// credential finds what looks like one in a line that could not be understood.
var credential = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)((?:api_?key|token|secret|password|authorization)["']?\s*:\s*)([^\s{\[#&*][^,}\]]*)`)
})

// Faulty reports whether an error was found at a field or inside it.
func (d *Document) Faulty(path string) bool {
	return slices.ContainsFunc(d.faults, func(f string) bool {
		rest, ok := strings.CutPrefix(f, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// hide keeps a value out of every snippet: a literal credential must not travel
// into a terminal or a CI log.
func (d *Document) hide(v any) { d.Hide(v) }

// Hide removes a value from the lines that findings show: it is a secret.
func (d *Document) Hide(v any) {
	if s := fmt.Sprint(v); len(s) > 1 {
		d.secrets = append(d.secrets, s)
	}
}
