// Package examples holds a small tool in each language, complete: what "agentctl plugin init" writes.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Each file is named: what a build or a package manager leaves in these folders
// must not become a part of this program.
//
//go:embed go/wordcount/main.go go/wordcount/main_test.go go/wordcount/tool.yaml go/wordcount/README.md go/wordcount/.gitignore
//go:embed python/main.py python/toolserver.py python/tool_pb2.py python/probes.py python/tool.proto python/wordcount
//go:embed python/requirements.txt python/tool.yaml python/README.md python/.gitignore
//go:embed node/main.js node/toolserver.js node/probes.js node/tool.proto node/package.json node/package-lock.json
//go:embed node/tool.yaml node/README.md node/.gitignore
//go:embed shell/wordcount shell/tool.yaml shell/README.md
var files embed.FS

// The protocol of the examples is a copy. Python's module of it is written by
// protoc --python_out=python -I ../internal/toolpb tool.proto, of whatever version;
// a test says when it is stale.
//
//go:generate cp ../internal/toolpb/tool.proto python/tool.proto
//go:generate cp ../internal/toolpb/tool.proto node/tool.proto

// Name is the name of the tool in every example; it is replaced by the name of a new one.
const Name = "wordcount"

// Languages lists the languages there are examples in.
func Languages() []string { return []string{"go", "python", "node", "shell"} }

// File is one file of a project.
type File struct {
	Path string
	Text []byte
	// Program: the file must be executable.
	Program bool
}

// Project returns the example in a language, under another name.
func Project(language, name string) ([]File, error) {
	if !slices.Contains(Languages(), language) {
		return nil, fmt.Errorf("there is no example in %q; there are: %s", language, strings.Join(Languages(), ", "))
	}
	dir := language
	if language == "go" { // a package's folder is its program's name
		dir = path.Join(language, Name)
	}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var project []File
	for _, e := range entries {
		text, err := fs.ReadFile(files, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		renamed := strings.ReplaceAll(string(text), Name, name)
		project = append(project, File{
			Path: strings.ReplaceAll(e.Name(), Name, name), Text: []byte(renamed), Program: strings.HasPrefix(renamed, "#!"),
		})
	}
	return project, nil
}
