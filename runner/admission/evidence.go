package admission

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// evidence compiles what agents declare of their runs.
func (a *admitter) evidence() {
	for _, name := range names(a.catalog.Agents) {
		e := a.catalog.Agents[name]
		declared := e.Object.Spec.Evidence
		if len(declared) == 0 {
			continue
		}
		set := a.catalog.evidenceOf(e.Object)
		for i := range declared {
			field := manifest.Index("spec.evidence", i) + ".expression"
			if e.Doc.Faulty(field) || declared[i].Expression == "" {
				continue
			}
			c, err := set.Compile(declared[i].Expression)
			if err != nil {
				a.add(inside(e.Doc, field, err))
				continue
			}
			if value, constant := c.Constant(); constant {
				what := map[bool]string{true: "true whatever the run does: it proves nothing", false: "false whatever the run does: no run can succeed"}[value]
				a.add(e.Doc.Warnf(field, "the evidence is %s", what).As(manifest.RuleEvidence).With("read calls, decisions, result or files, as in calls.passed('go', 'test')"))
				continue
			}
			if !a.opts.Cases { // who runs an agent has validated it
				continue
			}
			if command := fooledBy(a.catalog.shells(e.Object), c, declared[i].Expression); command != "" {
				a.add(e.Doc.Warnf(field, "a command that does nothing meets the evidence: %s", command).As(manifest.RuleEvidence).With("demand the command whose exit status counts, as in calls.passed('go', 'test')"))
			}
		}
	}
}

// evidenceOf compiles the evidence of an agent.
func (c *Catalog) evidenceOf(a *v1alpha1.Agent) *expect.Set {
	contract := c.contract(a)
	contract.Evidence = true
	return expect.NewSet(contract)
}

// contract is what is known of an agent whose runs are looked at.
func (c *Catalog) contract(a *v1alpha1.Agent) expect.Contract {
	contract := expect.Contract{Shells: c.shells(a)}
	if k := c.callable(a); !k.open && len(k.several) == 0 {
		contract.Tools = names(k.names)
	}
	if in := a.Spec.Inputs; in != nil {
		contract.Inputs = in.Schema.Raw
	}
	if out := a.Spec.Output; out != nil {
		contract.Output = out.Schema.Raw
	}
	return contract
}

// shells are the shipped tools of an agent that run commands, by what it calls them.
func (c *Catalog) shells(a *v1alpha1.Agent) map[string]string {
	all := map[string]string{}
	for _, t := range a.Spec.Tools {
		name, shipped := t.Name, t.Name
		if e, declared := c.Tools[t.Name]; declared {
			facts, _ := c.kinds.Facts(&e.Object.Spec) // what is wrong is found with the Tool
			name, shipped = CallName(e.Object), facts.Shipped
		}
		if shipped == shell.ToolBash || shipped == shell.ToolArgv {
			all[name] = shipped
		}
	}
	return all
}

// literals are the texts in an expression.
var literals = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`'[^'\\]*'|"[^"\\]*"`) })

// fooledBy returns a command that does nothing, and whose call alone makes an expectation
// true; "" if there is none. An expectation that a run without calls meets demands something
// else.
func fooledBy(shells map[string]string, c *expect.Expectation, expression string) string {
	if met(c, nil) {
		return ""
	}
	words := []string{"echo"}
	for _, text := range literals().FindAllString(expression, -1) {
		words = append(words, text[1:len(text)-1])
	}
	for _, tool := range names(shells) {
		for _, argv := range [][]string{{"true"}, words} {
			output := strings.Join(argv[1:], " ")
			if met(c, constantCall(tool, argv, output)) {
				return strings.TrimSpace(argv[0] + " " + output)
			}
		}
	}
	return ""
}

// constantCall is a call of a tool that runs a command which does nothing.
func constantCall(tool string, argv []string, output string) map[string]any {
	words := make([]any, len(argv))
	for i, w := range argv {
		words[i] = expect.Text(w)
	}
	return map[string]any{
		"id": "call_1_1", "tool": tool, "args": map[string]any{"command": strings.Join(argv, " "), "argv": words}, "decision": "allow", "rule": "", "approval": "",
		"state": "completed", "error": "", "output": output, "durationMs": int64(1), "exitCode": int64(0),
		"commands": []any{map[string]any{"name": argv[0], "argv": words, "words": words, "decisive": true}},
	}
}

// met reports whether an expectation is true of a run that makes one call, or none, says
// nothing and changes nothing.
func met(c *expect.Expectation, call map[string]any) bool {
	calls, decisions := []any{}, []any{}
	if call != nil {
		calls = append(calls, call)
		decisions = append(decisions, map[string]any{"call": call["id"], "tool": call["tool"], "action": "allow", "rule": "", "message": "", "risk": "R2", "source": ""})
	}
	done := int64(len(calls))
	verdict, err := c.Judge(context.Background(), map[string]any{
		"result": map[string]any{
			"agent": "", "phase": "Succeeded", "reason": "Completed", "exitCode": int64(0), "message": "", "output": "", "steps": done + 1, "durationMs": int64(1),
			"changesError": "", "warnings": []any{}, "tokens": map[string]any{}, "calls": map[string]any{"done": done, "refused": int64(0), "asked": int64(0), "repaired": int64(0)},
		},
		"calls": calls, "decisions": decisions, "prompt": "", "inputs": map[string]any{}, "files": map[string]any{},
	})
	return err == nil && verdict.Met
}
