package admission

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/manifest"
)

// mistaken holds an agent and a tool whose arguments have every shape; a policy
// with a mistake is put behind it.
const mistaken = `apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, scripted: {steps: [{say: hi}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: read}, {name: bash}, {name: send}], policyRefs: [{name: p}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: send}
spec:
  description: Sends.
  risk: R3
  effects: [Message]
  parameters:
    type: object
    properties:
      to: {type: string}
      amount: {type: number}
      count: {type: integer, minimum: 0, maximum: 9}
      level: {type: integer, enum: [1, 2]}
      mode: {type: string, enum: [fast, slow]}
      fixed: {type: string, const: here}
      flag: {type: boolean}
      kinds: {type: array, items: {type: string, enum: [a, b]}}
      by: {type: object, properties: {mode: {type: string, enum: [mail, sms]}}}
      headers: {type: object, additionalProperties: {type: string}}
  source: {exec: {command: ["true"]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
`

// TestMistakesInConditionsAreRefused: each with its line, and what the author may
// have meant. What is not refused here is a rule that never holds, or always fails.
func TestMistakesInConditionsAreRefused(t *testing.T) {
	for when, want := range map[string]string{
		// Names.
		"call.args.amuont == 3.0":                "did you mean amount?",
		"cal.args.to == ''":                      "did you mean call?",
		"callargs.to == ''":                      "variables are agent, ",
		"call.tool == 'bash'":                    "it has args, id, repeats",
		"call.args.by.mod == 'sms'":              "did you mean mode?",
		"call.args.?by.?mod.orValue('') == ''":   "did you mean mode?",
		"path.exists(p, p.inWorkspace)":          "did you mean paths?",
		"paths.exists(p, p.inWorkspce)":          "did you mean inWorkspace?",
		"cmd.comands.size() > 0":                 "did you mean commands?",
		"cmd.commands.exists(c, c.nmae == 'rm')": "did you mean name?",
		"net.host == 'x'":                        "did you mean hosts?",
		"budget.money.used > 5":                  "it has cost, seconds, steps, tokens",
		"session.call['bash'] > 3":               "did you mean calls?",
		"agent.lables.team == 'x'":               "did you mean labels?",
		"run.isInteractive":                      "did you mean interactive?",
		"params.hosts.size() > 0":                "declare it in spec.params",
		"variables.dest == ''":                   "declare it in spec.variables",
		"result.size > 1":                        "set on: Result",
		"call.args.to.startswith('x')":           "did you mean startsWith?",
		"call.args.to.contain('x')":              "did you mean contains?",
		"secrets(call.args.to)":                  "did you mean secret?",
		"size(params.host)":                      "declare it in spec.params",
		// Types.
		"call.args.to":                      "compare it with something",
		"call.args.to.size > 3":             "size(x)",
		"call.args.amount > '3'":            "stand without quotes",
		"call.args.flag == 'true'":          "stand without quotes",
		"call.args.to == 3":                 "it is a text",
		"!call.args.to":                     "compare each side",
		"call.args.to && call.args.flag":    "compare it with something",
		"call.args.headers.x == 3":          "it is a text",
		"call.args['to'] == 'x'":            "write x.name",
		"cmd.commands.exists(c, c == 'rm')": "has fields",
		"cmd.commands.exists(c, 'rm')":      "compare it with something",
		"'rm' in cmd.commands":              "list.exists",
		"cmd.writes.contains('x')":          "write 'x' in list",
		"cmd.dynamic == 'true'":             "stand without quotes",
		"net.hosts == 'x'":                  "write 'x' in list",
		"net.ports.exists(p, p == '443')":   "stand without quotes",
		"run.step > '3'":                    "stand without quotes",
		"now > '2026-01-01'":                "write timestamp('...')",
		"budget.tokens > 5":                 "has fields",
		"size(budget.tokens) > 1":           "has fields",
		"tool.risk == 'R2'":                 "stand without quotes",
		"tool.effects == 'Network'":         "write 'x' in list",
		"(call.args.to ? true : false)":     "condition ? one : another",
		// Values that do not exist.
		"tool.risk == 7":                               "allowed are 0 to 3",
		"tool.risk > 3":                                "allowed are 0 to 3",
		"tool.risk in [2, 4]":                          "allowed are 0 to 3",
		"tool.effects == ['Netwrok']":                  "did you mean Network?",
		"sets.contains(tool.effects, ['Netwrok'])":     "did you mean Network?",
		"sets.intersects(['Netwrok'], tool.effects)":   "did you mean Network?",
		"'Netwrok' in tool.effects":                    "did you mean Network?",
		"tool.effects.exists(e, e == 'Netwrok')":       "did you mean Network?",
		"tool.category == 'Reed'":                      "did you mean Read?",
		"tool.source == 'plugn'":                       "did you mean plugin?",
		"agent.mode == 'primary'":                      "did you mean Primary?",
		"paths.exists(p, p.op == 'wirte')":             "did you mean write?",
		"paths.exists(p, p.op in ['write', 'remove'])": "allowed are read, write, execute, delete",
		"paths[0].op == 'wirte'":                       "did you mean write?",
		"call.args.mode == 'fsat'":                     "did you mean fast?",
		"call.args.mode in ['fast', 'typo']":           "allowed are fast, slow",
		"call.args.?mode.orValue('') == 'fsat'":        "did you mean fast?",
		"call.args.kinds.all(k, k in ['a', 'c'])":      "allowed are a, b",
		"call.args.level == 3":                         "allowed are 1, 2",
		"call.args.count > 9":                          "allowed are 0 to 9",
		"call.args.fixed == 'there'":                   "did you mean here?",
		"call.args.by.mode == 'mial'":                  "did you mean mail?",
		"call.args.to.matches('[a-z')":                 "RE2",
		"now > timestamp('2026-13-01')":                "2026-01-31T12:00:00Z",
		"now - now > duration('5 minutes')":            "1h30m",
		// Syntax, and what cannot be paid for.
		"call.args.flag = true":        "write == to compare",
		"call.args.to == 'a' and true": "write && for and",
		"not call.args.flag":           "CEL",
		"call.args.to == 'a' ||":       "something is missing at the end",
		"call.args.to == 'a":           "CEL",
		"(call.args.to == 'a'":         "something is missing at the end",
		"call.args.kinds.all(a, call.args.kinds.all(b, call.args.kinds.all(c, a + b + c != '')))": "nest fewer loops",
		"lists.range(1000000).all(x, x >= 0)":                                                     "nest fewer loops",
	} {
		body := fmt.Sprintf("  rules:\n  - name: mistake\n    match: {tools: [send]}\n    when: %q\n    action: deny\n", when)
		_, found := admitFolder(t, map[string]string{"t.yaml": mistaken + body})
		line := strings.Count(mistaken, "\n") + 4
		if len(found) == 0 {
			t.Errorf("%s: accepted", when)
			continue
		}
		f := found[0]
		if f.Severity != manifest.Error || f.Path != "spec.rules[0].when" || f.Position.Line != line || f.Position.Col < 11 || !strings.HasSuffix(f.Position.File, "t.yaml") || !strings.Contains(f.Suggestion, want) {
			t.Errorf("%s: got %s at line %d: %s; %s, want line %d and the hint %q", when, f.Path, f.Position.Line, f.Message, f.Suggestion, line, want)
		}
	}
}

// TestMistakesInPoliciesAreTold: as errors, or as warnings where a policy may be
// meant for manifests that are not here.
func TestMistakesInPoliciesAreTold(t *testing.T) {
	rule := func(more string) string { return "  rules:\n  - {name: a, " + more + "}\n" }
	for body, want := range map[string]string{
		rule("action: dney"):                                  "error spec.rules[0].action",
		rule("match: {tools: [read]}"):                        "error spec.rules[0].action",
		"  rules:\n  - {action: deny}\n":                      "error spec.rules[0].name",
		rule("action: deny, match: {tool: [read]}"):           "error spec.rules[0].match.tool",
		rule("action: deny, match: {effects: [Netwrok]}"):     "error spec.rules[0].match.effects[0]",
		rule("action: deny, match: {risks: [R7]}"):            "error spec.rules[0].match.risks[0]",
		rule("action: deny, match: {categories: [Reed]}"):     "error spec.rules[0].match.categories[0]",
		rule("action: deny, 'on': Rezult"):                    "error spec.rules[0].on",
		rule("action: redact"):                                "error spec.rules[0].redact",
		rule("action: redact, redact: {field: [to]}"):         "error spec.rules[0].redact.field",
		rule("action: deny, messageExpression: tool.risk"):    "error spec.rules[0].messageExpression",
		rule("action: deny") + "  - {name: a, action: ask}\n": "error spec.rules[1].name",
		"  rule: []\n":                  "error spec.rule",
		"  default: dney\n":             "error spec.default",
		"  default: byrisk\n":           "error spec.default",
		"  mode: Enforced\n":            "error spec.mode",
		"  params: [a]\n":               "error spec.params",
		"  permissions: {bash: deny}\n": "error spec.permissions",
		"  permissions: [{permission: bash, action: redact}]\n":                                      "error spec.permissions[0].action",
		"  permissions: [{pattern: x, action: deny}]\n":                                              "error spec.permissions[0].permission",
		"  variables: [{name: d, expression: nope}]\n":                                               "error spec.variables[0].expression",
		"  variables: [{name: d, expression: variables.e}, {name: e, expression: '1'}]\n":            "error spec.variables[0].expression",
		"  variables: [{name: d, expression: '1'}, {name: d, expression: '2'}]\n":                    "error spec.variables[1].name",
		"  appliesTo: {agentSelector: {matchlabels: {a: b}}}\n":                                      "error spec.appliesTo.agentSelector.matchlabels",
		"  appliesTo: {agentSelector: {matchExpressions: [{key: a, operator: Inn, values: [x]}]}}\n": "error spec.appliesTo.agentSelector",
		rule("action: deny") + "  tests: [{name: t, call: {tool: bash}, expect: dney}]\n":            "error spec.tests[0].expect",
		rule("action: deny") + "  tests: [{name: t, call: {tool: bash}, expect: deny, rule: b}]\n":   "error spec.tests[0].rule",
		rule("action: deny, match: {tools: [bsh]}"):                                                  "warning spec.rules[0].match",
		rule("action: deny, match: {builtins: [Bash]}"):                                              "warning spec.rules[0].match",
		rule("action: deny, match: {agents: [b]}"):                                                   "warning spec.rules[0].match.agents",
		rule("action: deny, when: 'false'"):                                                          "warning spec.rules[0].when",
		rule("action: deny, when: 'cmd.dynamic && 1 == 2'"):                                          "warning spec.rules[0].when",
		rule("action: allow, match: {tools: [send]}"):                                                "warning spec.rules[0].match",
		rule("action: redact, redact: {fields: [contnet]}, match: {tools: [write]}"):                 "warning spec.rules[0].redact.fields[0]",
		rule("action: deny, redact: {secrets: true}"):                                                "error spec.rules[0].redact",
		rule("action: ask, 'on': Result"):                                                            "warning spec.rules[0].action",
		"  permissions: [{permission: bsh, action: deny}]\n":                                         "warning spec.permissions[0].permission",
		"  permissions: [{permission: read, pattern: '*.{env,key}', action: deny}]\n":                "warning spec.permissions[0].pattern",
		"  permissions: [{permission: read, pattern: '../*', action: deny}]\n":                       "warning spec.permissions[0].pattern",
	} {
		_, found := admitFolder(t, map[string]string{"t.yaml": mistaken + body})
		told := map[bool]string{true: "error", false: "warning"}
		got := "nothing"
		if len(found) > 0 {
			got = told[found[0].Severity == manifest.Error] + " " + found[0].Path
		}
		if got != want || found[0].Position.Line <= strings.Count(mistaken, "\n") {
			t.Errorf("%s: got %v, want %s", body, found, want)
		}
	}
}
