package agentctl_test

import (
	"fmt"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "agentctl.dev/agentctl"

// longestChain bounds the imports one has to follow from a program down to a
// leaf of this module.
const longestChain = 8

// rule forbids imports. Patterns name packages of ours as ./path and others by
// their import path; a final /... includes what lies below, * is one path
// element. "ours" is every package of this module, "foreign" every package that
// is neither ours nor the standard library's.
type rule struct {
	from, notFrom []string
	to, notTo     []string
	reason        string
}

// doors are the packages of the runner that a program uses. What lies behind
// them is free to change. Only the first executes runs.
var doors = []string{
	"./runner", "./runner/agenttest", "./runner/agenttest/report",
	"./runner/audit", "./runner/client", "./runner/connect", "./runner/decisions", "./runner/doctor", "./runner/export", "./runner/keys", "./runner/mcpserver", "./runner/model/provider", "./runner/opencode", "./runner/pluginkit",
	"./runner/policy/policytest", "./runner/policy/shellfacts", "./runner/publish", "./runner/replay", "./runner/runs", "./runner/statedir", "./runner/telemetry", "./runner/templates",
}

// facadeFiles bounds package runner, which connects the parts of a run and does not do
// their work.
const facadeFiles = 10

func TestThePackageThatConnectsARunStaysSmall(t *testing.T) {
	all, err := filepath.Glob("runner/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(own) == 0 || len(own) > facadeFiles {
		t.Errorf("package runner has %d files, at most %d: move work to plan, environment or execution: %v", len(own), facadeFiles, own)
	}
}

// rules is the table of CONTRIBUTING.md, section "What may import what".
var rules = []rule{
	{
		from: []string{"./api/message", "./api/event", "./api/reason", "./api/view", "./api/audit"},
		to:   []string{"ours", "foreign"}, notTo: []string{"./api/message", "./api/event", "./api/reason"},
		reason: "readers of events and streams must not pay for anything but the standard library",
	},
	{
		from: []string{"./api/..."}, to: []string{"ours"}, notTo: []string{"./api/..."},
		reason: "api is what others build on: it stands below everything of ours",
	},
	{
		from: []string{"./api/..."}, notFrom: []string{"./api/internal/..."}, to: []string{"foreign"}, notTo: []string{"k8s.io/apimachinery/...", "sigs.k8s.io/yaml"},
		reason: "a kind drags apimachinery along and nothing else",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./api/internal/..."}, to: []string{"./api/internal/..."},
		reason: "api/internal serves generators and tests; a program must not carry it",
	},
	{
		from: []string{"./plugins/..."}, to: []string{"./runner/...", "./api/...", "./cmd/..."},
		reason: "first-party tools prove that the SDK is enough",
	},
	{
		from: []string{"./plugins/*/..."}, notFrom: []string{"./plugins/sdk/...", "./plugins/host/...", "./plugins/sdktest"},
		to: []string{"ours"}, notTo: []string{"./plugins/sdk/...", "./plugins/*/internal/..."},
		reason: "a shipped tool uses of ours what a foreign tool can use: plugins/sdk",
	},
	{
		from: []string{"./plugins/sdk/..."}, to: []string{"ours"}, notTo: []string{"./plugins/sdk/..."},
		reason: "the SDK is a module of its own: who writes a tool gets it and nothing beside it",
	},
	{
		from: []string{"./runner/loop/..."}, to: []string{"ours"}, notTo: []string{"./api/...", "./runner/loop/..."},
		reason: "the loop is testable with four func adapters and no I/O, so it declares what it needs itself",
	},
	{
		from: []string{"./runner/model/*/..."}, notFrom: []string{"./runner/model/provider"},
		to: []string{"./runner/model/*/..."}, notTo: []string{"./runner/model/httpapi", "./runner/model/jsonpass"},
		reason: "one model provider must not depend on another",
	},
	{
		from: []string{"./runner/publish/github", "./runner/publish/gitlab", "./runner/publish/webhook"}, to: []string{"./runner/publish/*/..."}, notTo: []string{"./runner/publish/delivery", "./runner/publish/item"},
		reason: "one kind of target must not depend on another",
	},
	{
		from: []string{"./runner/tool/*/..."}, to: []string{"./runner/tool/*/..."}, notTo: []string{"./runner/tool/builtin"},
		reason: "one kind of tool must not depend on another",
	},
	{
		from: []string{"./runner/tool/source/*/..."}, notFrom: []string{"./runner/tool/source/sources"}, to: []string{"./runner/tool/source/*/..."},
		reason: "one kind of source must not depend on another",
	},
	{
		from: []string{"./runner/coder/..."}, to: []string{"ours"}, notTo: []string{"./runner/coder", "./runner/statedir", "./api/message"},
		reason: "a driver knows a program and nothing of the host that runs it",
	},
	{
		from: []string{"./runner/plan", "./runner/environment", "./runner/execution"}, to: []string{"./runner/plan", "./runner/environment", "./runner/execution"},
		reason: "the three parts of a run know each other by data; package runner connects them",
	},
	{
		from: []string{"./runner/sandbox/spec"}, to: []string{"ours"},
		reason: "the sandbox helper is static and tiny: its contract is a leaf",
	},
	{
		from: []string{"./runner"}, to: []string{"./runner/control/..."},
		reason: "a run does not know who keeps objects; control knows runs",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./cmd/agentd/...", "./runner/control/..."}, to: []string{"./runner/control/..."},
		reason: "only agentd is a control plane; agentctl stays light",
	},
	{
		from: doors[1:], to: []string{"./runner"},
		reason: "a program that executes no run need not link the engine",
	},
	{
		from: []string{"./cmd/agentctl/internal/display"}, to: []string{"./runner"},
		reason: "what is shown is data: the screen does not need the engine",
	},
	{
		from: []string{"./cmd/agentctl/..."}, to: []string{"ours"}, notTo: slices.Concat(doors, []string{"./api/...", "./cmd/agentctl/...", "./cmd/internal/..."}),
		reason: "the command line uses the doors, so an embedder can do what it does",
	},
	{
		from: []string{"./cmd/agentctl-tools/..."}, to: []string{"ours"}, notTo: []string{"./plugins/..."},
		reason: "the program of shipped tools is a plugin like any other",
	},
	{
		from: []string{"./cmd/agentctl-sandbox/..."}, to: []string{"ours"}, notTo: []string{"./runner/sandbox/spec", "./runner/sandbox/initsignal"},
		reason: "the sandbox helper is static and tiny",
	},
	{
		from: []string{"./cmd/agentctl-escape/..."}, to: []string{"ours"}, notTo: []string{"./runner/sandbox/spec"},
		reason: "the program that tries to escape runs inside a sandbox, and is tiny",
	},
	{
		from: []string{"./cmd/agentctl-entry/..."}, to: []string{"ours"}, notTo: []string{"./runner/sandbox/container/entry"},
		reason: "the first process of every container is static and tiny",
	},
	{
		from: []string{"./runner/sandbox/container/entry", "./runner/sandbox/initsignal"}, to: []string{"ours", "foreign"}, notTo: []string{"./runner/sandbox/initsignal"},
		reason: "what begins every container is a leaf of the standard library",
	},
	{
		from: []string{"./cmd/agentd/..."}, to: []string{"ours"}, notTo: slices.Concat(doors, []string{"./runner/control/...", "./api/...", "./cmd/agentd/...", "./cmd/internal/..."}),
		reason: "the control plane uses the doors and its controllers",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./cmd/..."}, to: []string{"./cmd/..."},
		reason: "nothing stands on a program",
	},
	{
		from: []string{"./runner/...", "./plugins/sdk/..."}, to: []string{"github.com/spf13/cobra/...", "github.com/spf13/pflag/..."},
		reason: "libraries do not own the terminal",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/model/openai/..."}, to: []string{"github.com/openai/openai-go/..."},
		reason: "heavy dependency behind one door: runner/model/openai",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/model/anthropic/..."}, to: []string{"github.com/anthropics/anthropic-sdk-go/..."},
		reason: "heavy dependency behind one door: runner/model/anthropic",
	},
	{
		from: []string{"ours"}, to: []string{"google.golang.org/genai/..."},
		reason: "only tests hold runner/model/gemini against it: it links text/template, which doubles the program",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/expr/..."}, to: []string{"github.com/google/cel-go/...", "cel.dev/expr/..."},
		reason: "heavy dependency behind one door: runner/expr",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./plugins/sdktest", "./plugins/host/...", "./runner/sandbox/..."},
		to:     []string{"github.com/hashicorp/go-plugin/..."},
		reason: "heavy dependency behind few doors: plugins/host and the sandbox's runners",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/sandbox/container/..."}, to: []string{"github.com/containerd/..."},
		reason: "heavy dependency behind one door: runner/sandbox/container",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/manifest"}, to: []string{"sigs.k8s.io/kustomize/..."},
		reason: "heavy dependency behind one door: runner/manifest",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/control/runapi"}, to: []string{"github.com/coder/websocket/..."},
		reason: "only agentd serves WebSockets; the command line reads the same events as SSE",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/image/..."}, to: []string{"github.com/google/go-containerregistry/..."},
		reason: "heavy dependency behind one door: runner/image",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/mcpserver", "./runner/tool/source/mcp/..."}, to: []string{"github.com/modelcontextprotocol/..."},
		reason: "the protocol has one door for each of its ends: runner/mcpserver and runner/tool/source/mcp",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/tool/diagnose"}, to: []string{"github.com/sourcegraph/jsonrpc2"},
		reason: "language servers are spoken to by one package: runner/tool/diagnose",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/telemetry/..."}, to: []string{"go.opentelemetry.io/proto/otlp/..."},
		reason: "what is sent to a collector is made by one package: runner/telemetry",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/control/embedded/..."},
		to:     []string{"k8s.io/apiserver/...", "k8s.io/apiextensions-apiserver/...", "go.etcd.io/..."},
		reason: "heavy dependency behind one door: runner/control/embedded",
	},
	{
		from: []string{"ours"}, notFrom: []string{"./runner/control/...", "./cmd/agentd/..."}, to: []string{"sigs.k8s.io/controller-runtime/..."},
		reason: "controllers live in runner/control",
	},
}

// closures are the programs and libraries whose whole dependency tree is bounded.
var closures = []struct {
	pkg    string
	to     []string
	reason string
}{
	{
		"./cmd/agentctl",
		[]string{"k8s.io/apiserver/...", "k8s.io/apiextensions-apiserver/...", "go.etcd.io/...", "sigs.k8s.io/controller-runtime/..."},
		"the command line starts in 15 ms; the API server, etcd and the controller manager stay in agentd",
	},
	{
		"./cmd/agentctl",
		[]string{"google.golang.org/genai/..."},
		"it calls methods by name, after which the linker keeps all there are: the program would be twice as large",
	},
	{
		"./cmd/agentctl-tools",
		[]string{"./runner/...", "./api/...", "k8s.io/...", "github.com/google/cel-go/...", "github.com/openai/openai-go/...", "github.com/anthropics/anthropic-sdk-go/...", "github.com/spf13/cobra/...", "github.com/hashicorp/...", "google.golang.org/grpc/reflection/..."},
		"the tools' process is small: it is started with every run",
	},
	{
		"./plugins/sdk",
		[]string{"./runner/...", "./api/...", "k8s.io/...", "github.com/google/cel-go/...", "github.com/openai/openai-go/...", "github.com/anthropics/anthropic-sdk-go/...", "github.com/spf13/cobra/..."},
		"who writes a tool gets the SDK and nothing beside it",
	},
	{
		"./cmd/agentctl-sandbox",
		[]string{"foreign-but-sys"},
		"the sandbox helper is static and tiny",
	},
}

func TestImportsKeepTheLayers(t *testing.T) {
	graph := imports(t)
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		for _, to := range graph[from] {
			if reason := forbidden(from, to); reason != "" {
				t.Errorf("%s imports %s: %s", from, to, reason)
			}
		}
	}
}

func TestClosuresStayLight(t *testing.T) {
	for _, c := range closures {
		if found, err := filepath.Glob(c.pkg + "/*.go"); err != nil || len(found) == 0 {
			continue // a program that comes with later work
		}
		t.Run(c.pkg, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", c.pkg).Output()
			if err != nil {
				t.Fatalf("go list -deps %s: %v", c.pkg, err)
			}
			for dep := range strings.FieldsSeq(string(out)) {
				if dep = local(dep); dep != c.pkg && matchAny(c.to, dep) {
					t.Errorf("%s reaches %s: %s", c.pkg, dep, c.reason)
				}
			}
		})
	}
}

// providerName is a name of a provider in a program's text.
var providerName = regexp.MustCompile(`\bv1alpha1\.Provider[A-Z]`)

// A provider is asked through its description (model.Provider): code that compares
// names has to be found again for the next one.
func TestProvidersAreNotToldApartByName(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "runner/model/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := providerName.Find(text); found != nil {
			t.Errorf("%s names %s: ask the registry of runner/model/provider, or add a field to model.Provider", file, found)
		}
	}
}

// sourceField is a field of a tool's source, or another name for it, in a program's text.
var sourceField = regexp.MustCompile(`\bSource\.(Builtin|Plugin|Container|MCP|Agent|Exec)\b|\bToolSource\{|= &?[\w.]*\.Tool\.Spec\.Source\b`)

// What follows from a tool's source is data (tool.Facts), which its implementation
// computes once: code that looks at the source itself has to be found again for the
// next one.
func TestToolSourcesAreNotToldApart(t *testing.T) {
	own := []string{
		"runner/tool/source/",        // the implementations
		"runner/tool/builtin/",       // the table of shipped tools, which are named by their source
		"runner/pluginkit/",          // makes a Tool of a command that has no manifest
		"api/v1alpha1/tool_types.go", // declares them; ToolSource.Kind is the one switch
		"api/v1alpha1/zz_generated.deepcopy.go",
	}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(file, p) }) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range sourceField.FindAllString(string(text), -1) {
			t.Errorf("%s has %s: ask tool.Kinds for the facts, or add one to tool.Facts", file, found)
		}
	}
	switches := 0
	text, err := os.ReadFile("api/v1alpha1/tool_types.go")
	if err != nil {
		t.Fatal(err)
	}
	for range regexp.MustCompile(`\bs\.Container != nil`).FindAll(text, -1) {
		switches++
	}
	if switches != 1 {
		t.Errorf("%d places of the API switch on the kind of a source, want 1", switches)
	}
}

func TestImportChainsAreShort(t *testing.T) {
	graph := imports(t)
	depth := map[string][]string{}
	var chain func(string) []string
	chain = func(pkg string) []string {
		if c, ok := depth[pkg]; ok {
			return c
		}
		longest := []string{}
		for _, to := range graph[pkg] {
			if _, ours := graph[to]; ours {
				if c := chain(to); len(c) > len(longest) {
					longest = c
				}
			}
		}
		depth[pkg] = append([]string{pkg}, longest...)
		return depth[pkg]
	}
	longest := []string{}
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if c := chain(pkg); len(c) > len(longest) {
			longest = c
		}
	}
	t.Logf("longest chain, %d packages: %s", len(longest), strings.Join(longest, " → "))
	if len(longest) > longestChain {
		t.Errorf("a chain of %d packages is longer than %d: who reads the first must hold all of them in mind", len(longest), longestChain)
	}
}

// TestRulesBite keeps the table honest: a rule that forbids nothing would pass
// every other test.
func TestRulesBite(t *testing.T) {
	const no = ""
	for _, c := range []struct{ from, to, want string }{
		{"./api/event", "k8s.io/apimachinery/pkg/runtime", "readers of events"},
		{"./api/view", "./api/event", no},
		{"./api/crds", "./runner/expr", "api is what others build on"},
		{"./api/v1alpha1", "k8s.io/apimachinery/pkg/apis/meta/v1", no},
		{"./api/v1alpha1", "github.com/openai/openai-go/v3", "apimachinery along and nothing else"},
		{"./api/event", "./api/internal/schema", "readers of events"},
		{"./api/v1alpha1", "./api/internal/schema", "generators and tests"},
		{"./plugins/shell", "./api/event", "first-party tools"},
		{"./plugins/shell", "./plugins/files", "what a foreign tool can use"},
		{"./plugins/shell", "./plugins/sdk", no},
		{"./plugins/shell", "mvdan.cc/sh/v3/syntax", no},
		{"./plugins/files", "./plugins/files/internal/glob", no},
		{"./plugins/sdk", "./plugins/host", "nothing beside it"},
		{"./plugins/sdk", "./plugins/sdktest", "nothing beside it"},
		{"./plugins/sdktest", "./plugins/host", no},
		{"./plugins/host", "./plugins/sdk/toolpb", no},
		{"./runner/loop", "./runner/policy", "four func adapters"},
		{"./runner/loop", "./api/message", no},
		{"./runner/model/openai", "./runner/model/gemini", "one model provider"},
		{"./runner/model/openai", "./runner/model", no},
		{"./runner/model/openai", "github.com/openai/openai-go/v3/option", no},
		{"./runner/tool/mcp", "./runner/tool/skill", "one kind of tool"},
		{"./runner/tool/mcp", "./runner/tool", no},
		{"./runner/tool/source/exec", "./runner/tool/source/plugin", "one kind of source"},
		{"./runner/tool/source/sources", "./runner/tool/source/plugin", no},
		{"./runner/tool/source/builtin", "./runner/tool/builtin", no},
		{"./runner/sandbox/spec", "./api/reason", "leaf"},
		{"./runner", "./runner/control", "control knows runs"},
		{"./runner/policy", "./runner/control", "only agentd"},
		{"./cmd/agentd", "./runner/control", no},
		{"./cmd/agentctl/internal/cli", "./runner/policy", "uses the doors"},
		{"./cmd/agentctl/internal/cli", "./runner", no},
		{"./cmd/agentctl/internal/cli", "./runner/runs", no},
		{"./cmd/agentd", "./runner/journal", "uses the doors"},
		{"./runner/pluginkit", "./runner", "link the engine"},
		{"./runner/agenttest", "./runner", "link the engine"},
		{"./runner", "./runner/agenttest/engine", no},
		{"./runner", "./runner/runs", no},
		{"./cmd/agentctl-tools", "./runner", "plugin like any other"},
		{"./cmd/agentctl-sandbox", "./runner/sandbox", "static and tiny"},
		{"./cmd/agentctl-escape", "./runner/sandbox", "inside a sandbox"},
		{"./cmd/agentctl-entry", "./runner/sandbox/container", "static and tiny"},
		{"./runner/sandbox/container/entry", "./api/reason", "leaf"},
		{"./cmd/agentd", "./runner/journal", "its controllers"},
		{"./runner", "./cmd/agentctl/internal/cli", "nothing stands on a program"},
		{"./runner/policy", "github.com/spf13/cobra", "own the terminal"},
		{"./runner/policy", "github.com/openai/openai-go/v3", "runner/model/openai"},
		{"./runner/model/openai", "github.com/anthropics/anthropic-sdk-go", "runner/model/anthropic"},
		{"./runner/model/anthropic", "github.com/anthropics/anthropic-sdk-go/option", no},
		{"./runner/model/gemini", "google.golang.org/genai", "only tests"},
		{"./runner/policy", "github.com/google/cel-go/cel", "runner/expr"},
		{"./runner/tool", "github.com/hashicorp/go-plugin", "few doors"},
		{"./plugins/sdk", "github.com/hashicorp/go-plugin", "few doors"},
		{"./runner/sandbox", "github.com/hashicorp/go-plugin/runner", no},
		{"./runner/sandbox", "github.com/containerd/containerd/v2/client", "runner/sandbox/container"},
		{"./runner/control", "go.etcd.io/etcd/server/v3/embed", "runner/control/embedded"},
		{"./runner/control", "go.etcd.io/bbolt", "runner/control/embedded"},
		{"./cmd/agentd", "k8s.io/apiserver/pkg/server", "runner/control/embedded"},
		{"./runner/control/embedded/apitest", "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset", no},
		{"./cmd/agentctl/internal/cli", "./runner/control/embedded", "only agentd"},
		{"./runner/journal", "sigs.k8s.io/controller-runtime/pkg/client", "controllers live"},
		{"./runner/sandbox/container", "github.com/google/go-containerregistry/pkg/v1", "runner/image"},
		{"./runner/image", "github.com/google/go-containerregistry/pkg/v1/remote", no},
		{"./runner/client", "github.com/coder/websocket", "reads the same events as SSE"},
		{"./runner/control/runapi", "github.com/coder/websocket", no},
		{"./runner/journal", "os", no},
	} {
		got := forbidden(c.from, c.to)
		if (c.want == no) != (got == no) || !strings.Contains(got, c.want) {
			t.Errorf("%s → %s: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func forbidden(from, to string) string {
	for _, r := range rules {
		if from != to && matchAny(r.from, from) && !matchAny(r.notFrom, from) && matchAny(r.to, to) && !matchAny(r.notTo, to) && !sameImplementation(r, from, to) {
			return r.reason
		}
	}
	return ""
}

// sameImplementation lets packages below runner/model/openai import each other
// although a rule keeps runner/model/* apart.
func sameImplementation(r rule, from, to string) bool {
	if len(r.from) != 1 || !slices.Equal(r.from, r.to) {
		return false
	}
	n := strings.Count(strings.TrimSuffix(r.from[0], "/..."), "/") + 1
	f, t := strings.Split(from, "/"), strings.Split(to, "/")
	return slices.Equal(f[:min(n, len(f))], t[:min(n, len(t))])
}

func matchAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, pkg) })
}

func match(pattern, pkg string) bool {
	ours := strings.HasPrefix(pkg, "./")
	first, _, _ := strings.Cut(pkg, "/")
	foreign := !ours && strings.Contains(first, ".")
	switch pattern {
	case "ours":
		return ours
	case "foreign":
		return foreign
	case "foreign-but-sys":
		return foreign && !strings.HasPrefix(pkg, "golang.org/x/sys/") && !strings.HasPrefix(pkg, "vendor/")
	}
	below := strings.HasSuffix(pattern, "/...")
	pattern = strings.TrimSuffix(pattern, "/...")
	n := strings.Count(pattern, "/") + 1
	parts := strings.Split(pkg, "/")
	if len(parts) < n || (len(parts) > n && !below) {
		return false
	}
	ok, err := path.Match(pattern, strings.Join(parts[:n], "/"))
	return err == nil && ok
}

// imports returns what each package of ours imports, tests left out, for every
// operating system at once.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	graph := map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ignored := false
		for _, group := range f.Comments {
			for _, c := range group.List {
				// A file for the go command's bookkeeping is no part of a package.
				expr, err := constraint.Parse(c.Text)
				ignored = ignored || (err == nil && (expr.String() == "deps" || expr.String() == "ignore"))
			}
		}
		if ignored {
			continue
		}
		pkg := "./" + filepath.ToSlash(filepath.Dir(file))
		for _, spec := range f.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if to = local(to); !slices.Contains(graph[pkg], to) {
				graph[pkg] = append(graph[pkg], to)
			}
		}
		if graph[pkg] == nil {
			graph[pkg] = []string{}
		}
	}
	if len(graph) < 5 {
		t.Fatalf("only %d packages found: is the test run from the root of the module?", len(graph))
	}
	return graph
}

// local writes a package of ours as ./path.
func local(pkg string) string {
	if rest, ok := strings.CutPrefix(pkg, module+"/"); ok {
		return "./" + rest
	}
	return pkg
}

// goFiles lists the Go files of the module.
func goFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(treeFiles(t), func(f string) bool { return filepath.Ext(f) != ".go" })
}

// treeFiles lists what belongs to the tree: no built programs, no hidden folders
// but .ci, no data of tests.
func treeFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(everyFile(t), func(f string) bool {
		return slices.Contains(strings.Split(filepath.ToSlash(f), "/"), "testdata")
	})
}

// everyFile is treeFiles with the data of tests.
func everyFile(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("walk %s: %w", p, err)
		}
		name := d.Name()
		if d.IsDir() && p != "." && (p == "bin" || p == "dist" || (strings.HasPrefix(name, ".") && p != ".ci")) {
			return filepath.SkipDir
		}
		// What the go command leaves behind is ignored by git too. In a linked
		// worktree .git is a file.
		if d.Type().IsRegular() && p != ".git" && filepath.Ext(p) != ".test" && filepath.Ext(p) != ".out" {
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
