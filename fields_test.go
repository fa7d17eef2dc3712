package agentctl_test

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
)

// forPeople are fields whose effect is that a person can read them.
var forPeople = []string{"AgentSpec.Description"}

// TestEveryFieldOfASpecIsRead: a field that is accepted and has no effect is worse
// than one that is refused. Admission does not count as a reader, except where it
// makes the plan of a run: it judges a field, and gives it no effect.
func TestEveryFieldOfASpecIsRead(t *testing.T) {
	read := fieldsThatAreRead(t)
	notYet := map[string]bool{}
	for _, f := range admission.NotYet() {
		notYet[f.Kind+" "+f.Path] = true
	}
	for kind, spec := range specs() {
		walkFields(reflect.TypeOf(spec), "spec", nil, func(path string, owner reflect.Type, f reflect.StructField) bool {
			name := owner.Name() + "." + f.Name
			switch {
			case notYet[kind+" "+path]:
				return false // refused, and everything below it
			case slices.Contains(forPeople, name) || read[name]:
			default:
				t.Errorf("%s %s: nothing reads %s: give it an effect, or list it in runner/admission as not yet", kind, path, name)
			}
			return true
		})
	}
}

func specs() map[string]any {
	return map[string]any{
		v1alpha1.KindAgent: v1alpha1.AgentSpec{}, v1alpha1.KindModel: v1alpha1.ModelSpec{}, v1alpha1.KindTool: v1alpha1.ToolSpec{},
		v1alpha1.KindPolicy: v1alpha1.PolicySpec{}, v1alpha1.KindRun: v1alpha1.RunSpec{}, v1alpha1.KindSkill: v1alpha1.SkillSpec{},
		v1alpha1.KindWorkspace: v1alpha1.NamedWorkspaceSpec{}, v1alpha1.KindApproval: v1alpha1.ApprovalSpec{},
	}
}

// walkFields visits the fields of our own structs below a type, each by its path
// in a manifest. The visitor reports whether to look below the field.
func walkFields(t reflect.Type, path string, above []reflect.Type, visit func(path string, owner reflect.Type, f reflect.StructField) bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if t.Kind() == reflect.Slice {
			path += "[]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[v1alpha1.Agent]().PkgPath() || slices.Contains(above, t) {
		return
	}
	above = append(slices.Clip(above), t)
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && strings.Contains(options, "inline"):
			walkFields(f.Type, path, above, visit)
		case visit(path+"."+name, t, f):
			walkFields(f.Type, path+"."+name, above, visit)
		}
	}
}

// fieldsThatAreRead type-checks every package of ours that reaches the kinds, and
// returns the fields that an expression reads, as Type.Field.
func fieldsThatAreRead(t *testing.T) map[string]bool {
	t.Helper()
	kinds := reflect.TypeFor[v1alpha1.Agent]().PkgPath()
	packages := listPackages(t)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	read := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		p := packages[path]
		if !strings.HasPrefix(path, module+"/") || strings.HasPrefix(path, module+"/api/") || !slices.Contains(p.Deps, kinds) {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: imports}).Check(path, fset, files, info); err != nil {
			t.Fatalf("check %s: %v", path, err)
		}
		written := map[ast.Expr]bool{}
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
					for _, e := range a.Lhs {
						written[e] = true
					}
				}
				return true
			})
		}
		for e, s := range info.Selections {
			if path == module+"/runner/admission" && !strings.HasPrefix(filepath.Base(fset.Position(e.Pos()).Filename), "plan") {
				continue
			}
			if s.Kind() == types.FieldVal && s.Obj().Pkg() != nil && s.Obj().Pkg().Path() == kinds && !written[e] {
				read[owner(s)+"."+s.Obj().Name()] = true
			}
		}
	}
	if len(read) < 50 {
		t.Fatalf("only %d fields are read: the search found nothing", len(read))
	}
	return read
}

// owner names the struct that declares a selected field, which may be embedded in
// the one that is selected from.
func owner(s *types.Selection) string {
	t := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		t = underlying(t).Field(i).Type()
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

func underlying(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying().(*types.Struct)
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles, Deps           []string
}

// listPackages asks the go command for all packages that the programs consist of,
// with their compiled form.
func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Deps", "./cmd/...", "./runner/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(out); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list: %v", err)
	}
	return all
}
