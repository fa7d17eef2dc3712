package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Pin identifies the description of a tool by its program: sha256:... Schemas
// that only differ in the order of their fields are the same.
func Pin(name, description string, parameters json.RawMessage) string {
	if c, err := Canonical(parameters); err == nil {
		parameters = c
	}
	b, err := json.Marshal(struct{ Name, Description, Parameters string }{name, description, string(parameters)})
	if err != nil {
		return "" // cannot happen: they are strings
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PinAll identifies all functions that a program describes, in any order.
func PinAll(d *Definition, found []Function) string {
	pins := make([]string, len(found))
	for i, f := range found {
		pins[i] = Pin(f.Name, f.Description, f.Parameters)
	}
	slices.Sort(pins)
	sum := sha256.Sum256([]byte(d.Name + "\x00" + strings.Join(pins, "\x00")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// unchanged compares the functions that a program describes now with its
// description before. A program is asked at every start: after a crash another
// program may start, which was not described to the model and was not approved.
func (p *Pool) unchanged(d *Definition, says []Function) error {
	now := ""
	if i := slices.IndexFunc(says, func(f Function) bool { return f.Name == d.function() }); i >= 0 {
		now = Pin(d.Name, says[i].Description, says[i].Parameters)
	}
	p.mu.Lock()
	before, pinned := p.pins[d.Name]
	if !pinned && d.Of != "" { // it was expanded from what its program described
		before, pinned = Pin(d.Name, d.Description, d.Parameters), true
		p.pins[d.Name] = before
	}
	if !pinned && now != "" {
		p.pins[d.Name] = now
	}
	p.mu.Unlock()
	switch {
	case !pinned || now == before:
		return nil
	case now == "":
		now = "nothing: it knows no function " + d.function()
	}
	return reason.New(reason.ToolChanged, "tool %q: its program tells another description or schema than before: it was %s and is %s", d.Name, before, now).
		WithHint("bring back the program it was, or begin a run with what it is now")
}

// refused is the result of a call whose program was not asked because its
// description has changed.
func refused(err error) (*message.ToolResult, bool) {
	if reason.Of(err) != reason.ToolChanged {
		return nil, false
	}
	return &message.ToolResult{Code: message.CodeTool, Text: string(reason.ToolChanged) + ": " + err.Error() + "; the call did nothing"}, true
}
