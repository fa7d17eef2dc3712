package agentctl_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/files"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/shell"
	"agentctl.dev/agentctl/plugins/web"
	"github.com/google/go-cmp/cmp"
)

// topLevel are the folders of the tree; a new one is a design note first.
var topLevel = []string{".ci", "api", "bench", "cmd", "docs", "manifests", "plugins", "policies", "runner"}

func TestTopLevelFoldersAreTheListedOnes(t *testing.T) {
	for _, f := range treeFiles(t) {
		top, _, below := strings.Cut(filepath.ToSlash(f), "/")
		if below && !slices.Contains(topLevel, top) {
			t.Errorf("%s: %s is not one of the top-level folders %v", f, top, topLevel)
		}
		if !below && !strings.HasPrefix(top, ".") && !strings.HasSuffix(top, ".md") && !strings.HasSuffix(top, "_test.go") &&
			!slices.Contains([]string{"LICENSE", "Makefile", "go.mod", "go.sum", "go.work", "go.work.sum"}, top) {
			t.Errorf("%s: nobody looks for a file of this kind at the top", f)
		}
	}
}

// TestGateRunsWhatTheReadmeSays: the first commands that a newcomer is told are
// targets, and the gate runs the one that tests.
func TestGateRunsWhatTheReadmeSays(t *testing.T) {
	readme, targets, gate := string(read(t, "README.md")), string(read(t, "Makefile")), string(read(t, filepath.Join(".ci", "run")))
	_, first, _ := strings.Cut(readme, "```sh\n")
	first, _, _ = strings.Cut(first, "```")
	for _, target := range []string{"demo", "test"} {
		if !strings.Contains(first, "make "+target+" ") || !strings.Contains(targets, "\n"+target+": ") {
			t.Errorf("make %s is not among the first commands of README.md, or no target", target)
		}
	}
	if !strings.Contains(gate, " make test\n") {
		t.Error(".ci/run does not run make test")
	}
}

// TestFuzzFindingsAreReplayed: an input that fuzzing has found fails the tests only
// as long as the target that it is filed under exists.
func TestFuzzFindingsAreReplayed(t *testing.T) {
	targets := map[string]bool{}
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parse(t, file, parser.SkipObjectResolution).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets[filepath.Join(filepath.Dir(file), "testdata", "fuzz", f.Name.Name)] = true
			}
		}
	}
	found := 0
	for _, f := range everyFile(t) {
		if !strings.Contains(filepath.ToSlash(f), "/testdata/fuzz/") {
			continue
		}
		found++
		if !targets[filepath.Dir(f)] {
			t.Errorf("%s: no fuzz target reads this input", f)
		}
	}
	if found == 0 || len(targets) == 0 {
		t.Errorf("%d inputs for %d targets: the search found nothing", found, len(targets))
	}
}

func TestNoDrawers(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "constants", "base"}
	for _, f := range goFiles(t) {
		for part := range strings.SplitSeq(filepath.ToSlash(strings.TrimSuffix(f, ".go")), "/") {
			if slices.Contains(drawers, strings.TrimSuffix(part, "_test")) && !strings.HasPrefix(f, "api/event/") {
				t.Errorf("%s: a name that says nothing collects everything; name it by its noun", f)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	docs := map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || file == "deps.go" {
			continue
		}
		f := parse(t, file, parser.ParseComments|parser.PackageClauseOnly)
		dir := filepath.Dir(file)
		if docs[dir] == nil {
			docs[dir] = []string{}
		}
		text := f.Doc.Text()
		if text == "" {
			continue
		}
		docs[dir] = append(docs[dir], file)
		want := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			want = "Command " + filepath.Base(dir) + " "
		}
		first, _, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(first, want) {
			t.Errorf("%s: the package comment begins with %q, not with %q", file, first, want)
		}
		if paragraph, _, _ := strings.Cut(text, "\n\n"); !strings.ContainsAny(paragraph, ".:") {
			t.Errorf("%s: the package comment begins with no sentence", file)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(docs)) {
		if n := len(docs[dir]); n != 1 {
			t.Errorf("%s: %d package comments %v, want exactly one", dir, n, docs[dir])
		}
	}
}

// A pattern costs 5 to 150 µs, in every start of every program that links it.
func TestNoPatternIsCompiledBeforeMain(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(filepath.Dir(file), "test") {
			continue
		}
		f := parse(t, file, parser.SkipObjectResolution)
		for _, d := range f.Decls {
			if _, isFunc := d.(*ast.FuncDecl); isFunc {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "MustCompile" {
					t.Errorf("%s: a pattern is compiled before main; use sync.OnceValue, or a function without a pattern", file)
				}
				_, later := n.(*ast.FuncLit)
				return !later
			})
		}
	}
}

func TestMainFilesAreShort(t *testing.T) {
	const most = 40
	for _, file := range goFiles(t) {
		if filepath.Base(file) == "main.go" {
			if n := bytes.Count(read(t, file), []byte("\n")); n >= most {
				t.Errorf("%s has %d lines, want < %d: signal context, run, exit code", file, n, most)
			}
		}
	}
}

func TestGeneratedFilesSaySo(t *testing.T) {
	generated := regexp.MustCompile(`(^|/)(zz_generated[^/]*|[^/]*\.pb)\.go$|^api/crds/[^/]*\.yaml$`)
	mark := regexp.MustCompile(`^(//|#) Code generated .* DO NOT EDIT\.$`)
	found := 0
	for _, file := range treeFiles(t) {
		if !generated.MatchString(filepath.ToSlash(file)) {
			continue
		}
		found++
		// Build constraints and, from protoc, the comment of the source may stand
		// before the mark; nothing of Go may.
		head, _, _ := strings.Cut(string(read(t, file)), "\npackage ")
		if !slices.ContainsFunc(strings.Split(head, "\n"), mark.MatchString) {
			t.Errorf("%s does not say at its top that it is generated", file)
		}
	}
	if found < 5 {
		t.Errorf("only %d generated files found: the pattern of this test is stale", found)
	}
}

// TestTableOfBuiltinsIsFresh: the runner knows the shipped tools without
// starting their program, from a table that the program wrote and carries itself.
func TestTableOfBuiltinsIsFresh(t *testing.T) {
	want, err := sdk.Describe(slices.Concat(files.Tools(), shell.Tools(), web.Tools())...)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"runner/tool/builtin/builtins.json", "cmd/agentctl-tools/described.json"} {
		got := read(t, file)
		if diff := cmp.Diff(strings.TrimSpace(string(want)), strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("%s is stale; run make generate (-want +got):\n%s", file, diff)
		}
	}
}

func TestNoPathsOfAMachine(t *testing.T) {
	// Written in parts, so that this file does not contain them.
	machine := regexp.MustCompile(`(^|[^A-Za-z0-9_.~$}-])(/wo` + `rk/|/ro` + `ot/(go|\.cache|\.config|\.local|src)(/|$)|/ho` + `me/[a-z]+/(go|src)/)`)
	for _, file := range everyFile(t) {
		for i, line := range strings.Split(string(read(t, file)), "\n") {
			if found := machine.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is a path of somebody's machine", file, i+1, strings.TrimSpace(found))
			}
		}
	}
}

// TestLibrariesLeaveTheTerminalAlone finds what forbidigo finds, without a linter.
func TestLibrariesLeaveTheTerminalAlone(t *testing.T) {
	forbidden := map[string]string{
		"os.Exit": "only a main ends the process", "log.Fatal": "only a main ends the process",
		"fmt.Print": "libraries do not own the terminal", "fmt.Println": "libraries do not own the terminal", "fmt.Printf": "libraries do not own the terminal",
	}
	for _, file := range goFiles(t) {
		slash := filepath.ToSlash(file)
		if strings.HasSuffix(file, "_test.go") || (!strings.HasPrefix(slash, "runner/") && !strings.HasPrefix(slash, "plugins/sdk/")) {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.FuncDecl); ok && d.Name.Name == "init" && d.Recv == nil && !strings.HasSuffix(slash, ".pb.go") {
				t.Errorf("%s: init: importing a package has no side effect", fset.Position(d.Pos()))
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && f.Name.Name != "main" {
					// sdk.Serve is the whole main function of a program of tools.
					serves := slash == "plugins/sdk/serve.go" && sel.Sel.Name == "Exit"
					if reason := forbidden[pkg.Name+"."+sel.Sel.Name]; reason != "" && !serves {
						t.Errorf("%s: %s.%s: %s", fset.Position(n.Pos()), pkg.Name, sel.Sel.Name, reason)
					}
				}
			}
			return true
		})
	}
}

// TestLinterKnowsTheDoors: the layers are kept twice, by this test and in the
// editor by depguard; the second must not fall behind.
func TestLinterKnowsTheDoors(t *testing.T) {
	config := string(read(t, ".golangci.yml"))
	for _, door := range []string{
		"github.com/openai/openai-go", "github.com/google/cel-go", "github.com/hashicorp/go-plugin", "github.com/spf13/cobra",
		"github.com/containerd", "github.com/google/go-containerregistry", "sigs.k8s.io/controller-runtime", "k8s.io/apiserver", "go.etcd.io", module + "/runner/control", module + "/plugins",
	} {
		if !strings.Contains(config, door) {
			t.Errorf(".golangci.yml has no rule about %s, layering_test.go has", door)
		}
	}
}

func parse(t *testing.T, file string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
