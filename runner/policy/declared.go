package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// Declared judges a command that the author of the agent has declared, and that the runner
// starts by itself, without a shell: it is judged as bash would be for the same words, by
// the same rules, lists and defaults. Contained says that it can have no lasting effect.
// It is no call: it is not counted, and nobody is asked about it.
func (e *Engine) Declared(ctx context.Context, call message.ToolCall, argv []string, contained bool) (message.Decision, error) {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = shell.Quote(a)
	}
	args, err := json.Marshal(map[string]string{"command": strings.Join(words, " ")})
	if err != nil {
		return message.Decision{}, fmt.Errorf("judge the command: %w", err)
	}
	call.ID, call.Tool, call.Args, call.Again, call.Outside = call.ID+declaredID, shell.ToolBash, args, true, nil
	t := &Tool{
		Name: shell.ToolBash, Builtin: shell.ToolBash, Source: "builtin", Risk: v1alpha1.RiskR2, Category: v1alpha1.CategoryExecute,
		Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite, v1alpha1.EffectExecute}, Schema: commandSchema, Contained: contained, OwnTemporary: contained,
	}
	if e.context.Ready != nil {
		_ = e.context.Ready(ctx) // what keeps the files away keeps the command from running
	}
	d, err := e.decideInTime(ctx, e.judgedTool(t, e.policies), call)
	for _, c := range e.ceilings {
		if err != nil || d.Action == message.Deny {
			return d, err
		}
		var by message.Decision
		if by, err = c.Declared(ctx, call, argv, contained); err == nil && by.Rule != ruleByRisk {
			d = narrower(d, by)
		}
	}
	return d, err
}

// declaredID is behind the id of the call that a command is judged for.
const declaredID = "/declared"

// commandSchema is that of the arguments of bash which a declared command has.
var commandSchema = json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"workdir":{"type":"string"},"timeout":{"type":"integer"},"description":{"type":"string"}},"required":["command"],"additionalProperties":false}`)
