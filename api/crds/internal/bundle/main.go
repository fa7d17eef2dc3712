// Command bundle turns the CRDs of a folder into the Go file that package crds reads.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bundle CRD-FOLDER OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func write(dir, out string) error {
	src, err := generate(os.DirFS(dir))
	if err != nil {
		return err
	}
	return os.WriteFile(out, src, 0o644) //nolint:gosec // a source file, as readable as its neighbours
}
