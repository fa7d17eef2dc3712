package plan

import (
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// describe adds to the description of the shipped bash where its commands start and what
// bounds them, and to that of publish what an agent declares. It depends on the manifest alone, so that equal agents send equal requests:
// the path of the folder is in the environment of the system prompt. A description of the
// author's own stays as it is.
func describe(d *tool.Definition, declared []v1alpha1.Publication) {
	shipped, ok := builtin.Lookup(d.Shipped)
	if !ok || d.Description != shipped.Description {
		return
	}
	if d.Shipped == builtin.Publish {
		d.Description += publications(declared)
	}
	if d.Shipped != "bash" {
		return
	}
	s := &d.Spec
	text := []string{"It starts in the workspace folder of the environment"}
	switch s.WorkspaceAccess {
	case v1alpha1.AccessReadWrite:
		text[0] += ", whose files it may change"
	case v1alpha1.AccessReadOnly:
		text[0] += ", whose files are read-only"
	case v1alpha1.AccessNone:
		text[0] = "It sees no workspace"
	}
	if s.Limits.Timeout.Duration > 0 {
		text = append(text, fmt.Sprintf("a call has %s", short(s.Limits.Timeout.Duration)))
	}
	if s.Limits.OutputLines > 0 && s.Limits.OutputBytes > 0 {
		text = append(text, fmt.Sprintf("you read %d lines or %d bytes of output", s.Limits.OutputLines, s.Limits.OutputBytes))
	}
	switch s.Network.Mode {
	case v1alpha1.NetworkNone:
		text = append(text, "no network")
	case v1alpha1.NetworkProxy:
		text = append(text, "network: "+strings.Join(s.Network.Allow, ", "))
	case v1alpha1.NetworkHost:
		text = append(text, "network: that of the host")
	}
	d.Description += " " + strings.Join(text, "; ") + "."
}

// publications lists what an agent may prepare for publication.
func publications(declared []v1alpha1.Publication) string {
	takes := map[v1alpha1.PublicationType]string{
		v1alpha1.PublishComment: "a comment; takes body", v1alpha1.PublishPullRequest: "a pull request with what this run has changed; takes title and body",
		v1alpha1.PublishWebhook: "a message to a program; takes data, body, or both",
	}
	var b strings.Builder
	for i := range declared {
		p := &declared[i]
		fmt.Fprintf(&b, " %s: %s, at most %d bytes, at most %d of them.", p.Name, takes[p.Type], p.MaxBytes, p.Max)
	}
	return b.String()
}

// short is a duration as a person writes it: 2m, not 2m0s.
func short(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}

// Undescribed reports whether a description is that of the shipped tool alone, as earlier
// versions sent it.
func Undescribed(d *tool.Definition, description string) bool {
	shipped, ok := builtin.Lookup(d.Shipped)
	return ok && description == shipped.Description
}
