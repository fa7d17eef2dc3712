package apitest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func defaults(t *testing.T, k *client) {
	o := k.create(t, `{kind: Agent, metadata: {name: a}, spec: {modelRef: {name: m}, limits: {maxSteps: 7}}}`)
	for _, want := range []struct {
		path  []string
		value string
	}{
		{[]string{"spec", "limits", "maxSteps"}, "7"},
		{[]string{"spec", "limits", "timeout"}, "15m"},
		{[]string{"spec", "mode"}, "All"},
		{[]string{"spec", "loopGuard", "identicalCalls"}, "3"},
		{[]string{"spec", "limits", "maxTokens"}, ""},
	} {
		if got := field(t, o, want.path...); got != want.value {
			t.Errorf("%s is %q, want %q", strings.Join(want.path, "."), got, want.value)
		}
	}
}

func prunes(t *testing.T, k *client) {
	o := object(t, `{kind: Run, metadata: {name: r}, spec: {agentRef: {name: a, uid: x}, prompt: hi, promt: ho}}`)
	got, err := k.on("runs").Create(k.ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		t.Fatal(err)
	}
	if spec := field(t, got, "spec"); strings.Contains(spec, "promt") || strings.Contains(spec, "uid") || !strings.Contains(spec, "prompt: hi") {
		t.Errorf("kept:\n%s", spec)
	}
}

func strict(t *testing.T, k *client) {
	o := object(t, `{kind: Run, metadata: {name: r}, spec: {agentRef: {name: a}, promt: ho}}`)
	_, err := k.on("runs").Create(k.ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.promt"`) {
		t.Errorf("got %v", err)
	}
}

func keeps(t *testing.T, k *client) {
	o := k.create(t, `{kind: Model, metadata: {name: m}, spec: {provider: openai, model: x, parameters: {temperature: 0.5, deep: {er: [1, a]}}}}`)
	if got, want := field(t, o, "spec", "parameters"), "deep:\n  er:\n  - 1\n  - a\ntemperature: 0.5"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// fine is what is wanted of a case that is accepted.
const fine = ""

// judgement is an object that is accepted, or refused for a reason.
type judgement struct{ spec, want string }

// judged has every CEL rule of the definitions, and some rules of each other
// sort, with what they accept and what they reject.
var judged = []judgement{
	{`{kind: Model, spec: {provider: openai, model: gpt}}`, fine},
	{`{kind: Model, spec: {provider: openai}}`, "model is required: it is never guessed"},
	{`{kind: Model, spec: {provider: gemini, model: ""}}`, "model is required: it is never guessed"},
	{`{kind: Model, spec: {provider: scripted, scripted: {steps: [{say: hi}]}}}`, fine},
	{`{kind: Model, spec: {provider: scripted}}`, "provider scripted needs scripted.steps"},
	{`{kind: Model, spec: {provider: cassette, cassette: {path: /x}}}`, fine},
	{`{kind: Model, spec: {provider: cassette}}`, "provider cassette needs cassette.path"},
	{`{kind: Run, spec: {agentRef: {name: a}, workspaceRef: {name: w}}}`, fine},
	{`{kind: Run, spec: {agentRef: {name: a}, workspace: {source: {path: /x}}}}`, fine},
	{`{kind: Run, spec: {agentRef: {name: a}, workspaceRef: {name: w}, workspace: {source: {path: /x}}}}`, "give workspaceRef or workspace, not both"},
	{`{kind: Run, spec: {agentRef: {name: a}, skillRef: {name: s}}}`, fine},
	{`{kind: Run, spec: {agentRef: {name: a}, skillRef: {name: s}, prompt: hi}}`, "the plan of a skill reads no prompt: give its data in inputs"},
	{`{kind: Run, spec: {prompt: hi}}`, "spec.agentRef: Required value"},
	{`{kind: Run, spec: {agentRef: {name: a}, limits: {maxSteps: 0}}}`, "greater than or equal to 1"},
	{`{kind: Run, spec: {agentRef: {name: a}, limits: {maxCost: "1.2.3"}}}`, "should match"},
	{`{kind: Run, spec: {agentRef: {name: a}, prompt: 7}}`, `must be of type string`},
	{`{kind: Model, spec: {provider: OpenAI, model: x}}`, "Unsupported value"},
	{`{kind: Skill, spec: {dir: /x}}`, fine},
	{`{kind: Skill, spec: {image: "registry.example.com/skills@sha256:0000000000000000000000000000000000000000000000000000000000000000", dir: x}}`, fine},
	{`{kind: Skill, spec: {description: a skill of nothing}}`, "a skill has a dir or an image, a plan, or both"},
	{`{kind: Approval, spec: {runRef: {name: r}, call: c, tool: t}}`, "spec.callHash: Required value"},
	{`{kind: Test, spec: {agentRef: {name: a}, expect: ["a text", {expression: a mapping, name: ends, message: m}]}}`, fine},
	{`{kind: Test, spec: {agentRef: {name: a}, expect: [{name: ends}]}}`, "spec.expect[0].expression: Required value"},
	{`{kind: Test, spec: {agentRef: {name: a}, expect: [{expression: 7}]}}`, "must be of type string"},
	{`{kind: Test, spec: {agentRef: {name: a}, cases: [{name: a}, {name: a}]}}`, "Duplicate value"},
	{`{kind: Test, spec: {agentRef: {name: a}, cases: [{name: a/b}]}}`, "should match"},
	{`{kind: Test, spec: {agentRef: {name: a}, approvals: [{answer: Maybe}]}}`, "Unsupported value"},
	{`{kind: Workspace, spec: {apply: Sometimes}}`, "Unsupported value"},
	{`{kind: Tool, spec: {source: {mcp: {stdio: {command: [x]}}}}}`, fine},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp"}}}}}`, fine},
	{`{kind: Tool, spec: {source: {mcp: {}}}}`, "needs exactly one of stdio, http, container"},
	{`{kind: Tool, spec: {source: {mcp: {stdio: {command: [x]}, http: {url: "https://host/mcp"}}}}}`, "needs exactly one of stdio, http, container"},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp", auth: {clientCredentials: {clientID: a, clientSecret: {valueFrom: {env: S}}, issuer: "https://host"}}}}}}}`, fine},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp", auth: {clientCredentials: {clientID: a, clientSecret: {valueFrom: {env: S}}, issuer: "https://host", tokenURL: "https://host/token"}}}}}}}`, "needs at most one of issuer, tokenURL"},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp", auth: {authorizationCode: {}}}}}}}`, fine},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp", auth: {}}}}}}`, "needs exactly one of clientCredentials, authorizationCode"},
	{`{kind: Tool, spec: {source: {mcp: {http: {url: "https://host/mcp", auth: {authorizationCode: {clientSecret: {valueFrom: {env: S}}}}}}}}}`, "clientSecret needs clientID"},
	{`{kind: Tool, spec: {risk: R9, source: {exec: {command: [x]}}}}`, "Unsupported value"},
	{`{kind: Policy, spec: {rules: [{name: a, action: perhaps}]}}`, "Unsupported value"},
	{`{kind: Agent, spec: {modelRef: {name: m}, tools: [{name: a}, {name: a}]}}`, "Duplicate value"},
	{`{kind: Agent, spec: {modelRef: {name: m}, loopGuard: {identicalCalls: 1}}}`, "1 would allow no call: 0 switches the detector off, 2 is the least"},
	{`{kind: Agent, spec: {modelRef: {name: m}, loopGuard: {identicalCalls: 0, cycles: 2, repeatedTextBytes: 4096}}}`, fine},
	{`{kind: Agent, spec: {modelRef: {name: m}, loopGuard: {repeatedTextBytes: 4095}}}`, "0 switches the detector off, 4096 is the least"},
	{`{kind: Agent, spec: {modelRef: {name: m}, diagnostics: [{name: vet, files: ["**/*.go"], command: [go, vet]}]}}`, fine},
	{`{kind: Agent, spec: {modelRef: {name: m}, diagnostics: [{name: ts, files: ["*.ts"], server: [s], language: typescript}]}}`, fine},
	{`{kind: Agent, spec: {modelRef: {name: m}, diagnostics: [{name: vet, files: ["*"], command: [a], server: [b]}]}}`, "exactly one of command and server is required"},
	{`{kind: Agent, spec: {modelRef: {name: m}, diagnostics: [{name: ts, files: ["*"], server: [s], format: Text}]}}`, "format is of a command: a server answers in its own"},
	{`{kind: Agent, spec: {modelRef: {name: m}, diagnostics: [{name: vet, files: ["*"], command: [s], language: go}]}}`, "language is of a server"},
	{`{kind: Agent, spec: {modelRef: {name: m}, publish: [{name: review, type: Comment, forge: {type: GitHub, repository: o/r, number: "7"}, credential: {valueFrom: {env: T}}}]}}`, fine},
	{`{kind: Agent, spec: {modelRef: {name: m}, publish: [{name: hook, type: Webhook, url: "https://host/hook"}]}}`, fine},
	{`{kind: Agent, spec: {modelRef: {name: m}, publish: [{name: hook, type: Webhook, forge: {type: GitHub, repository: o/r}}]}}`, "a Webhook has a url, the other types have a forge"},
	{`{kind: Agent, spec: {modelRef: {name: m}, publish: [{name: review, type: Comment, forge: {type: GitHub, repository: o/r}, credential: {valueFrom: {env: T}}}]}}`, "a Comment needs forge.number, for example ${inputs.number}"},
	{`{kind: Agent, spec: {modelRef: {name: m}, publish: [{name: fix, type: PullRequest, forge: {type: GitLab, repository: o/r}}]}}`, "a forge needs a credential"},
	{`{kind: Sample, spec: {size: 3, limit: 3}}`, fine},
	{`{kind: Sample, spec: {size: 4, limit: 3}}`, "size is over the limit"},
	{`{kind: Sample, spec: {items: [{name: a}, {name: a}]}}`, "Duplicate value"},
}

func rules(t *testing.T, k *client) {
	for i, c := range judged {
		o := object(t, c.spec)
		o.SetName("o" + strconv.Itoa(i))
		_, err := k.on(plural(o)).Create(k.ctx, o, metav1.CreateOptions{})
		switch {
		case c.want == fine && err != nil:
			t.Errorf("%s: %v", c.spec, err)
		case c.want != fine && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.spec, err, c.want)
		}
	}
}

func columns(t *testing.T, k *client) {
	k.create(t, `{kind: Run, metadata: {name: r}, spec: {agentRef: {name: reviewer}}}`)
	var table metav1.Table
	if err := json.Unmarshal(k.raw(t, "/apis/agentctl.dev/v1alpha1/namespaces/"+k.namespace+"/runs", "application/json;as=Table;g=meta.k8s.io;v=v1"), &table); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, c := range table.ColumnDefinitions {
		names = append(names, c.Name)
	}
	if got, want := strings.Join(names, " "), "Name Agent Status Steps Cost Age Reason"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != "r" || table.Rows[0].Cells[1] != "reviewer" {
		t.Errorf("rows %v", table.Rows)
	}
}

func schemas(t *testing.T, k *client) {
	d, err := discovery.NewDiscoveryClientForConfig(k.config)
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "the kinds in the OpenAPI documents", func() bool {
		doc, err := d.OpenAPISchema()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(doc.String(), "dev.agentctl.v1alpha1.Agent") && strings.Contains(string(k.tryRaw("/openapi/v3/apis/agentctl.dev/v1alpha1")), "LoopGuard")
	})
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, g := range groups.Groups {
		found = found || g.Name == "agentctl.dev"
	}
	if !found {
		t.Errorf("discovery does not list the group: %v", groups.Groups)
	}
}

// raw gets a path.
func (c *client) raw(t *testing.T, path, accept string) []byte {
	t.Helper()
	body, err := c.rest().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (c *client) tryRaw(path string) []byte {
	body, err := c.rest().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(c.ctx)
	if err != nil {
		return nil
	}
	return body
}

func (c *client) rest() rest.Interface {
	return discovery.NewDiscoveryClientForConfigOrDie(c.config).RESTClient()
}
