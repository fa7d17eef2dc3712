package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestTheDocsHaveEveryNameAndVariable(t *testing.T) {
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range []string{"names.go", "settings.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if strings.HasPrefix(name.Name, "attr") || strings.HasPrefix(name.Name, "op") || strings.HasPrefix(name.Name, "metric") || strings.HasPrefix(name.Name, "unit") || strings.HasPrefix(name.Name, "event") || strings.HasPrefix(name.Name, "env") || name.Name == "Conventions" {
					text, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, text)
				}
			}
			return true
		})
	}
	for _, name := range []string{"ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION", "CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY", "PROTOCOL"} {
		names = append(names, envOTLP+name)
	}
	if len(names) < 50 {
		t.Fatalf("only %d names were found", len(names))
	}
	for _, name := range names {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/telemetry.md does not have %s", name)
		}
	}
}
