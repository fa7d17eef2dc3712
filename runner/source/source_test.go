package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/misuse"
)

func TestAPathStandsForWhatLiesThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "below/b.yml", "below/.hidden/c.yaml", "text/d.md", "built/kustomization.yaml", "built/below/e.yaml"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		reason, path string
		recursive    bool
		want         []Source
	}{
		"stdin":     {"it is read as it comes", "-", true, []Source{{Path: "-"}}},
		"missing":   {"the reading tells", at("none"), true, []Source{{Path: at("none")}}},
		"file":      {"it stands for itself", at("a.yaml"), true, []Source{{Path: at("a.yaml")}}},
		"folder":    {"not what lies below, unless asked", dir, false, []Source{{Path: dir}}},
		"recursive": {"no hidden folder, and none of what kustomize reads by itself", dir, true, []Source{{Path: dir}, {Path: at("below")}, {Path: at("built"), Kustomize: true}}},
		"kustomize": {"whether asked for more or not", at("built"), false, []Source{{Path: at("built"), Kustomize: true}}},
	} {
		got, err := Find(c.path, c.recursive)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s: %v (-want +got):\n%s", name, c.reason, err, diff)
		}
	}
	if _, err := Find(at("text"), true); !errors.As(err, new(*misuse.Error)) || !strings.Contains(err.Error(), "hold no manifest") {
		t.Errorf("a folder of nothing: %v", err)
	}
}

func TestABuildIsBounded(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	folder := Source{t.TempDir(), true}
	if _, err := folder.Build(t.Context()); !errors.As(err, new(*misuse.Error)) || !strings.Contains(err.Error(), "neither kustomize nor kubectl") {
		t.Errorf("without a program: %v", err)
	}
	for says, want := range map[string]string{
		"echo broken >&2; exit 1":                      "broken",
		"while :; do echo xxxxxxxxxxxxxxxxxxxxx; done": "it becomes larger than",
	} {
		if err := os.WriteFile(filepath.Join(bin, "kustomize"), []byte("#!/bin/sh\n"+says+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := folder.Build(t.Context()); !errors.As(err, new(*misuse.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", says, err, want)
		}
	}
}
