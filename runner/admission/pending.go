package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// FieldNotYet is a field, or some values of one, that the contract names and this
// version does not carry out. A manifest that sets it is refused.
type FieldNotYet struct {
	// Kind and Path name the field; [] after a name means every entry of a list.
	Kind, Path string
	// Values that are refused. None: every value but Default, an empty list
	// and an absent field.
	Values []string
	// Default is what the schema fills in.
	Default any
	// Why is what would happen, or what to write instead.
	Why string
}

// noSecrets is the advice where there are no Secrets.
const noSecrets = "only a cluster has Secrets: use env, file or exec"

// notYet lists every field that is declared and does not work yet. The change that
// makes a field work removes its line here, the mark in its comment (which explain
// shows) and its row in docs/not-yet.md; tests compare the three.
var notYet = []FieldNotYet{
	{Kind: v1alpha1.KindAgent, Path: "spec.publish[].credential.valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindModel, Path: "spec.apiKey.valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindTool, Path: "spec.env[].valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindTool, Path: "spec.source.mcp.http.headers[].valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindTool, Path: "spec.source.mcp.http.auth.clientCredentials.clientSecret.valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindTool, Path: "spec.source.mcp.http.auth.authorizationCode.clientSecret.valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindTool, Path: "spec.flow", Why: "no rule could read the labels"},
	{Kind: v1alpha1.KindWorkspace, Path: "spec.source.git.auth.password.valueFrom.secretKeyRef", Why: noSecrets},
	{Kind: v1alpha1.KindRun, Path: "spec.workspace.source.git.auth.password.valueFrom.secretKeyRef", Why: noSecrets},
}

// NotYet lists the fields that are declared and do not work yet.
func NotYet() []FieldNotYet { return slices.Clone(notYet) }

// pending refuses what does not work yet: a field that is accepted and has no
// effect deceives its author.
func (a *admitter) pending(d *manifest.Document) {
	for _, f := range notYet {
		if f.Kind != d.Kind {
			continue
		}
		each(d.Value, f.Path, "", func(at string, v any) {
			if !f.refuses(v) {
				return
			}
			what := "the field"
			if f.Values != nil {
				what = fmt.Sprint(v)
			}
			a.add(d.Errorf(at, "%s is not supported by this version: %s", what, f.Why).With("remove it"))
		})
	}
}

func (f *FieldNotYet) refuses(v any) bool {
	if f.Values != nil {
		s, ok := v.(string)
		return ok && slices.Contains(f.Values, s)
	}
	if l, ok := v.([]any); ok {
		return len(l) > 0
	}
	return v != nil && !reflect.DeepEqual(v, f.Default)
}

// each calls found for every value that a path leads to in a decoded object, with
// the path as findings write it.
func each(v any, path, at string, found func(at string, v any)) {
	name, rest, more := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	m, _ := v.(map[string]any)
	v, ok := m[name]
	if !ok {
		return
	}
	at = strings.TrimPrefix(at+"."+name, ".")
	if !list {
		if !more {
			found(at, v)
			return
		}
		each(v, rest, at, found)
		return
	}
	entries, _ := v.([]any)
	for i, e := range entries {
		each(e, rest, fmt.Sprintf("%s[%d]", at, i), found)
	}
}

// lookup follows a path of plain names into a decoded object.
func lookup(obj map[string]any, path string) any {
	var v any = obj
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}
