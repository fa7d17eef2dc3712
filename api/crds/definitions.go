package crds

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed agentctl.dev_*.yaml
var files embed.FS

// Definitions returns the text of every CustomResourceDefinition, as an API
// server takes it, in the order of their names.
func Definitions() [][]byte {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(fmt.Sprintf("crds: list the definitions: %v", err)) // only for a bad pattern
	}
	texts := make([][]byte, len(names))
	for i, name := range names {
		if texts[i], err = files.ReadFile(name); err != nil {
			panic(fmt.Sprintf("crds: read %s: %v", name, err)) // it is part of the program
		}
	}
	return texts
}
