package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadSource reads the Go files of some folders, each one package.
func ReadSource(dirs ...string) (*Source, error) {
	s := &Source{docs: map[string]string{}, enums: map[string][]any{}, lists: map[string][]any{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no Go files in %s", dir)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if err := s.readFile(file); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *Source) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.readType(f.Name.Name, gen, spec)
			case *ast.ValueSpec:
				if gen.Tok == token.CONST {
					s.readConstant(f.Name.Name, spec)
				}
			}
		}
	}
	return nil
}

func (s *Source) readType(pkg string, gen *ast.GenDecl, spec *ast.TypeSpec) {
	name := pkg + "." + spec.Name.Name
	doc := spec.Doc
	if doc == nil {
		doc = gen.Doc
	}
	s.docs[name] = sentence(doc)
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range st.Fields.List {
		for _, id := range field.Names {
			if text := sentence(field.Doc); text != "" {
				s.docs[name+"."+id.Name] = text
			}
		}
	}
}

// readConstant keeps constants that name their type: the values of a closed list.
func (s *Source) readConstant(pkg string, spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range spec.Values {
		lit, ok := v.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(lit.Value); err == nil {
			s.enums[pkg+"."+typ.Name] = append(s.enums[pkg+"."+typ.Name], text)
		}
	}
}

// sentence is a comment as one line.
func sentence(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
