package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/publish/item"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// Items are what the calls of a run may prepare for publication, and have prepared.
type Items struct {
	Declared []v1alpha1.Publication
	// Prepared returns those in the journal.
	Prepared func() []message.Publication
}

// publications answers the calls that prepare an item for publication. Nothing is sent.
func publications() HostTool { return HostTool{Tool: builtin.Publish, Answer: prepareItem} }

func prepareItem(_ context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var p message.Publication
	if err := json.Unmarshal(call.Args, &p); err != nil {
		return nil, err
	}
	declared, wrong := h.Items.entry(p.Name)
	if wrong == "" {
		p.Type = string(declared.Type)
		wrong = h.Items.refuses(declared, &p)
	}
	if wrong == "" && h.Secret(p.Title, p.Body, string(p.Data)) {
		wrong = "it holds a secret"
	}
	if wrong != "" {
		return h.Result(Reply{Output: wrong + "; nothing is prepared", Failed: true, Code: message.CodeTool})
	}
	result, err := h.Result(Reply{
		Output: fmt.Sprintf("%s (%s) is prepared: it is not sent before a person or a pipeline does so after this run", p.Name, p.Type),
		Title:  strings.TrimSuffix(p.Name+": "+p.Title, ": "),
	})
	if err != nil {
		return nil, err
	}
	result.Publication = &p
	return result, nil
}

// entry finds a declared publication, or says which there are.
func (i Items) entry(name string) (*v1alpha1.Publication, string) {
	names := make([]string, len(i.Declared))
	for at := range i.Declared {
		if names[at] = i.Declared[at].Name; names[at] == name {
			return &i.Declared[at], ""
		}
	}
	if len(names) == 0 {
		return nil, "this agent declares no publications"
	}
	return nil, fmt.Sprintf("there is no publication %q; declared are: %s", name, strings.Join(names, ", "))
}

// refuses returns why an item is not prepared, "" if it is.
func (i Items) refuses(declared *v1alpha1.Publication, p *message.Publication) string {
	had := 0
	if i.Prepared != nil {
		for _, other := range i.Prepared() {
			if other.Name == p.Name {
				had++
			}
		}
	}
	if had >= int(declared.Max) {
		return fmt.Sprintf("a run prepares at most %d of %s, and this one has", declared.Max, p.Name)
	}
	return item.Check(declared, p)
}

// holdsSecret reports whether texts hold a secret of the run, or what is left of one.
func (r *Registry) holdsSecret(texts ...string) bool {
	for _, text := range texts {
		if text != "" && (r.Redactor.String(text) != text || string(r.Redactor.JSON([]byte(text))) != text) {
			return true
		}
	}
	return false
}
