package admission

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

var update = flag.Bool("update", false, "write what admission says into testdata")

// TestFindings holds each archive of testdata against what admission says: the
// files of the archive are a folder of manifests, "want" is the whole text.
func TestFindings(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path)
		})
	}
}

func golden(t *testing.T, path string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want, index := "", -1
	for i, f := range archive.Files {
		if f.Name == "want" {
			want, index = string(f.Data), i
			continue
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, found := Read(t.Context(), []string{"."}, nil, Options{Models: provider.All(), Tools: sources.All()})
	var got strings.Builder
	if err := found.Write(&got, 0); err != nil {
		t.Fatal(err)
	}
	if *update {
		if index < 0 {
			archive.Files = append(archive.Files, txtar.File{Name: "want"})
			index = len(archive.Files) - 1
		}
		archive.Files[index].Data = []byte(got.String())
		if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	// The name of an archive is its expectation: ok-* has no error, warn-* has
	// warnings only, every other has an error.
	name := filepath.Base(path)
	if ok := strings.HasPrefix(name, "ok-") || strings.HasPrefix(name, "warn-"); found.HasErrors() == ok {
		t.Errorf("HasErrors = %t", found.HasErrors())
	}
}
