// Package builtin is the table of the shipped tools: what they take, and the least risk they carry.
package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Tool is the description of a shipped tool that the runner has without
// starting its program.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage

	// Risk and Effects are floors: a manifest may only raise them.
	Risk    v1alpha1.Risk
	Effects []v1alpha1.Effect

	Category    v1alpha1.Category
	Concurrency v1alpha1.Concurrency
	Retry       v1alpha1.RetryClass
	Access      v1alpha1.WorkspaceAccess
	// Network of the tool where no manifest declares it.
	Network v1alpha1.Network
	// KeepHead selects which end of a long output matters more: the head, or the
	// tail.
	KeepHead bool
	// FreeText arguments have no influence on what a call does; two calls that
	// differ only in them are equal to the loop guard.
	FreeText []string
	// Paths are the arguments that name files.
	Paths []string
	// Search tools read all files of a folder, and name those that they show in their
	// metadata: what an agent may not read is left out of their results.
	Search bool
	// Creates is set when a call may create the file that it names.
	Creates bool
	// URL is the argument that names the server which answers a call, Endpoint the
	// variable of the Tool that does: a tool with one needs a manifest.
	URL, Endpoint string
	// Host tools are answered by the runner (tool.HostTools): Description and
	// Parameters are in the table, because no program describes them.
	Host bool
}

// The network of the shipped tools: none, or the proxy. A program that reaches servers
// has no other way to them, so that what its Tool lists is all that it reaches.
var (
	encrypted = v1alpha1.Network{Mode: v1alpha1.NetworkProxy, Allow: []string{"*:443"}}
	unlisted  = v1alpha1.Network{Mode: v1alpha1.NetworkProxy}
	offline   = v1alpha1.Network{Mode: v1alpha1.NetworkNone}
)

// The risks are the runner's own judgement, never a program's claim.
var table = []Tool{
	{
		Name: "bash", Risk: v1alpha1.RiskR2, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite, v1alpha1.EffectExecute},
		Category: v1alpha1.CategoryExecute, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadWrite, Network: offline, FreeText: []string{"description"}, Paths: []string{"workdir"},
	},
	{
		Name: "codesearch", Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
		Category: v1alpha1.CategorySearch, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessReadOnly, Network: offline, KeepHead: true, Paths: []string{"path"}, Search: true,
	},
	coding,
	{
		Name: "edit", Risk: v1alpha1.RiskR1, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite},
		Category: v1alpha1.CategoryEdit, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadWrite, Network: offline, Paths: []string{"path"},
	},
	{
		Name: "glob", Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
		Category: v1alpha1.CategorySearch, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessReadOnly, Network: offline, KeepHead: true, Paths: []string{"path"}, Search: true,
	},
	{
		Name: "grep", Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
		Category: v1alpha1.CategorySearch, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessReadOnly, Network: offline, KeepHead: true, Paths: []string{"path"}, Search: true,
	},
	{
		Name: "list", Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
		Category: v1alpha1.CategoryRead, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessReadOnly, Network: offline, KeepHead: true, Paths: []string{"path"},
	},
	opencodeRun,
	{
		Name: "patch", Risk: v1alpha1.RiskR1, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite},
		Category: v1alpha1.CategoryEdit, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadWrite, Network: offline,
	},
	{
		Name: "question", Risk: v1alpha1.RiskR0, Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyShared,
		Retry: v1alpha1.RetryIdempotent, Access: v1alpha1.AccessNone, Network: offline, KeepHead: true,
		Host: true, Description: aboutQuestion, Parameters: questionParameters,
	},
	{
		Name: "read", Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
		Category: v1alpha1.CategoryRead, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessReadOnly, Network: offline, KeepHead: true, Paths: []string{"path"},
	},
	publish,
	load,
	task,
	taskApply,
	{
		Name: "todoread", Risk: v1alpha1.RiskR0, Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyShared,
		Retry: v1alpha1.RetryIdempotent, Access: v1alpha1.AccessNone, Network: offline, KeepHead: true,
		Host: true, Description: aboutTodoRead, Parameters: todoReadParameters,
	},
	{ // exclusive: of two lists in one step, the later one counts
		Name: "todowrite", Risk: v1alpha1.RiskR0, Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyExclusive,
		Retry: v1alpha1.RetryIdempotent, Access: v1alpha1.AccessNone, Network: offline, KeepHead: true,
		Host: true, Description: aboutTodoWrite, Parameters: todoWriteParameters,
	},
	{ // a request carries out what its address holds: it is not a mere read
		Name: "webfetch", Risk: v1alpha1.RiskR2, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectNetwork},
		Category: v1alpha1.CategoryFetch, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessNone, Network: encrypted, KeepHead: true, URL: "url",
	},
	{
		Name: "websearch", Risk: v1alpha1.RiskR2, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectNetwork},
		Category: v1alpha1.CategorySearch, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
		Access: v1alpha1.AccessNone, Network: unlisted, KeepHead: true, Endpoint: "WEBSEARCH_ENDPOINT",
	},
	{
		Name: "workspace_fs", Risk: v1alpha1.RiskR1, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite},
		Category: v1alpha1.CategoryEdit, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadWrite, Network: offline, KeepHead: true, Paths: []string{"path"}, Creates: true,
	},
	{
		Name: "workspace_shell", Risk: v1alpha1.RiskR2, Effects: []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectExecute},
		Category: v1alpha1.CategoryExecute, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadOnly, Network: offline, Paths: []string{"cwd"},
	},
	{
		Name: "write", Risk: v1alpha1.RiskR1, Effects: []v1alpha1.Effect{v1alpha1.EffectWrite},
		Category: v1alpha1.CategoryEdit, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryNever,
		Access: v1alpha1.AccessReadWrite, Network: offline, Paths: []string{"path"}, Creates: true,
	},
}

// Program is the file name of the program that serves the shipped tools.
const Program = "agentctl-tools"

// described is written by "agentctl-tools --describe"; make generate renews it.
//
//go:embed builtins.json
var described []byte

var tools = sync.OnceValue(func() map[string]Tool {
	var list []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(described, &list); err != nil {
		panic(fmt.Sprintf("builtins.json is compiled in and does not parse: %v", err))
	}
	m := make(map[string]Tool, len(table))
	for _, t := range table {
		if t.Host {
			m[t.Name] = t
		}
		for _, d := range list {
			if d.Name == t.Name {
				t.Description, t.Parameters = d.Description, d.Parameters
				m[t.Name] = t
			}
		}
	}
	return m
})

// Lookup returns the shipped tool of that name.
func Lookup(name string) (Tool, bool) {
	t, ok := tools()[name]
	return t, ok
}

// Named returns the name of the shipped tool that a source is, or "".
func Named(s *v1alpha1.ToolSource) string {
	if s.Builtin == nil {
		return ""
	}
	return s.Builtin.Name
}

// Source is the source of the shipped tool of a name.
func Source(name string) v1alpha1.ToolSource {
	return v1alpha1.ToolSource{Builtin: &v1alpha1.BuiltinSource{Name: name}}
}

// Command is the source of a program that is started for each call.
func Command(words []string) v1alpha1.ToolSource {
	return v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: words}}
}

// strict is the contract of a program without a known one.
var strict = Tool{
	Risk: v1alpha1.RiskR2, Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyShared,
	Retry: v1alpha1.RetryNever, Access: v1alpha1.AccessReadOnly,
}

// Complete fills in what a Tool leaves to its program: the contract of the
// shipped tool, which a manifest can only tighten, or the strict defaults.
func Complete(s *v1alpha1.ToolSpec) {
	contract := strict
	if s.Source.Agent != nil {
		contract = delegating
		if s.Parameters == nil || len(s.Parameters.Raw) == 0 {
			s.Parameters = &v1alpha1.JSON{Raw: slices.Clone(delegating.Parameters)}
		}
	}
	if found, ok := Lookup(Named(&s.Source)); ok {
		contract = found
		s.Parameters = &v1alpha1.JSON{Raw: slices.Clone(found.Parameters)}
		s.Risk = max(s.Risk, found.Risk) // R0 < R1 < R2 < R3 as text, too
		fill(&s.Description, found.Description)
	}
	for _, e := range contract.Effects {
		if !slices.Contains(s.Effects, e) {
			s.Effects = append(s.Effects, e)
		}
	}
	fill(&s.Risk, contract.Risk)
	fill(&s.Category, contract.Category)
	fill(&s.Concurrency, contract.Concurrency)
	fill(&s.Retry, contract.Retry)
	fill(&s.WorkspaceAccess, contract.Access)
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// Names returns the names of all shipped tools, sorted.
func Names() []string {
	names := make([]string, 0, len(table))
	for _, t := range table {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
