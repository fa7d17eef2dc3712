package manifest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// caseEnds are what the name of a file ends in that may hold cases.
var caseEnds = []string{"tests.yaml", "tests.yml"}

// holdsCases reports whether a document is not an object but a list of cases for a policy:
// "policy: NAME" and "tests:". A document with a kind is an object, whatever its file is
// called, so that no policy is missed.
func (c chunk) holdsCases(file string) bool {
	if !slices.ContainsFunc(caseEnds, func(end string) bool { return strings.HasSuffix(strings.ToLower(file), end) }) {
		return false
	}
	has := func(key string) bool {
		return bytes.HasPrefix(c.data, []byte(key)) || bytes.Contains(c.data, []byte("\n"+key))
	}
	return has("policy:") && has("tests:") && !has("kind:") && !has("apiVersion:")
}

// ReadCases decodes the documents that hold cases, which a run does not need. Each becomes
// a Policy with only its name and spec.tests in Cases.
func (s *Set) ReadCases(ctx context.Context) Findings {
	read, found := read(ctx, s.cases, nil)
	s.Cases, s.cases = read.Documents, nil
	return found
}

// asPolicy gives a list of cases the shape of the policy it is about, so that
// the one schema judges both.
func asPolicy(obj map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KindPolicy,
		"metadata": map[string]any{"name": obj["policy"]},
		"spec":     map[string]any{"tests": obj["tests"]},
	}
}

// caseKeys reports unknown keys next to the cases, and a policy without a name.
func (d *Document) caseKeys(obj map[string]any) (found Findings) {
	if name := obj["policy"]; name == nil || name == "" {
		f := Finding{Severity: Error, Path: "policy", Message: "names no policy: cases are about one"}
		found = append(found, d.at(f, d.Locate("policy")))
	}
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		if key != "policy" && key != "tests" {
			f := Finding{Severity: Error, Path: key, Message: fmt.Sprintf("unknown field %q: a list of cases has policy and tests", key)}
			found = append(found, d.at(f, d.LocateKey(key)))
		}
	}
	return found
}

// written is the path of a field of such a policy in the file.
func written(path string) string {
	if path == "metadata.name" {
		return "policy"
	}
	return strings.TrimPrefix(path, "spec.")
}
