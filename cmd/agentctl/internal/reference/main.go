// Command reference writes the generated pages of docs/reference.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/cmd/agentctl/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write writes every page into a folder.
func write(dir string) error {
	fields, err := fieldsPage()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"cli.md": commandsPage(cli.Command()), "fields.md": fields, "reasons.md": reasonsPage()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // a page that everybody reads
			return err
		}
	}
	return nil
}
