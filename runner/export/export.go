// Package export writes a run with its files into one file, and opens such a file as a state folder.
package export

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/runner/policy"
)

// Suffix ends the name of an export: it is a tar that is compressed with gzip.
//
//	export.json          the Manifest, first
//	runs/ID/...          the journal and the blobs of the run and of those below it, as
//	                     they are in a state folder
//	files/...            the files of the run as they were when it was exported
const Suffix = ".tar.gz"

// Bounds of an export.
const (
	maxEntries  = 1_000_000
	maxBytes    = 16 << 30
	maxManifest = 16 << 20
)

const (
	manifestName = "export.json"
	runsName     = "runs"
	filesName    = "files"
)

// format is the version of the layout.
const format = 1

// Manifest says what is in an export.
type Manifest struct {
	Format int `json:"export"`
	// Run is the id of the run, Runs are that and those of the runs below it.
	Run  string   `json:"run"`
	Runs []string `json:"runs"`
	// Seq and Hash are of the last event of the run.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// Time is when it was written, Version that of the program.
	Time    time.Time `json:"time"`
	Version string    `json:"version,omitempty"`
	// HasFiles says that the files are in it, Git that .git is among them.
	HasFiles bool `json:"hasFiles"`
	Git      bool `json:"git,omitempty"`
	// Excluded are the globs of files that are not in it, Secrets are files that are not in
	// it because their names say that they hold secrets.
	Excluded []string `json:"excluded"`
	Secrets  []string `json:"secrets"`
}

// LeavesOut reports whether a file of the run is not in the export, at any time.
func (m *Manifest) LeavesOut(name string) bool {
	return policy.IsSecret(name) || excludes(m.Excluded, name)
}

// excludes reports whether a glob matches a path or a folder above it, as those of
// workspace.exclude do.
func excludes(globs []string, name string) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		for _, g := range globs {
			g = strings.TrimSuffix(g, "/")
			of := name
			if !strings.Contains(g, "/") {
				of = path.Base(name)
			}
			if doublestar.MatchUnvalidated(strings.TrimPrefix(g, "/"), of) {
				return true
			}
		}
	}
	return false
}

// Is reports whether a word of the command line names an export: a path that ends like one.
func Is(word string) bool { return strings.HasSuffix(word, Suffix) }

// check refuses what no export says of itself.
func (m *Manifest) check() error {
	switch {
	case m.Format != format:
		return fmt.Errorf("it is of version %d, and this agentctl reads version %d", m.Format, format)
	case !slices.Contains(m.Runs, m.Run):
		return fmt.Errorf("it does not hold run %q, which it is of", m.Run)
	}
	return nil
}
