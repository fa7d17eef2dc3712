// Package source finds what a path of manifests stands for: files, folders, and folders that kustomize builds.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/misuse"
)

// kustomizations are the names of a file that makes a folder kustomize's.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

const (
	// maxFolders bounds the folders that are searched.
	maxFolders = 10000
	// kustomizeTime bounds a build.
	kustomizeTime = time.Minute
)

// Source is a file or a folder whose manifests are read.
type Source struct {
	Path string
	// Kustomize says that they are what Build makes of the folder.
	Kustomize bool
}

// Find returns what a path stands for, recursive with the folders below it. What
// cannot be read is left for the reading to tell.
func Find(path string, recursive bool) ([]Source, error) {
	info, err := os.Stat(path)
	if path == "-" || err != nil || !info.IsDir() {
		return []Source{{Path: path}}, nil //nolint:nilerr // the reading tells it, with its place
	}
	if kustomized(path) {
		return []Source{{path, true}}, nil
	}
	if !recursive {
		return []Source{{Path: path}}, nil
	}
	var all []Source
	folders := 0
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if p != path && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if folders++; folders > maxFolders {
			return fmt.Errorf("more than %d folders", maxFolders)
		}
		if kustomized(p) {
			all = append(all, Source{p, true})
			return fs.SkipDir
		}
		if holdsManifests(p) {
			all = append(all, Source{Path: p})
		}
		return nil
	})
	if err != nil {
		return nil, misuse.Errorf("search %s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, misuse.Errorf("%s and the folders in it hold no manifest: no file ends in .yaml, .yml or .json", path)
	}
	return all, nil
}

func kustomized(dir string) bool {
	return slices.ContainsFunc(kustomizations, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

func holdsManifests(dir string) bool {
	entries, _ := os.ReadDir(dir) // one that cannot be read has been reported by the walk
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name())))
	})
}

// Build has kustomize make the manifests, with the program that the user has.
func (s Source) Build(ctx context.Context) ([]byte, error) {
	dir := s.Path
	argv := []string{"kustomize", "build", dir}
	if _, err := exec.LookPath(argv[0]); err != nil {
		argv = []string{"kubectl", "kustomize", dir}
		if _, err := exec.LookPath(argv[0]); err != nil {
			return nil, misuse.Errorf("%s holds a kustomization, and neither kustomize nor kubectl is installed", dir).
				WithHint("install one of them, or name the manifests themselves")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, kustomizeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out, said := bounded{most: manifest.MaxFile}, bounded{most: 8 << 10, drop: true}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	if err := cmd.Run(); err != nil {
		if out.full {
			return nil, misuse.Errorf("build %s: it becomes larger than %d MiB", dir, manifest.MaxFile>>20)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, misuse.Errorf("build %s with %s: %w\n%s", dir, argv[0], err, strings.TrimSpace(said.text.String()))
	}
	return out.text.Bytes(), nil
}

// bounded keeps what a program says up to a size; what is more is an error, or
// dropped.
type bounded struct {
	text bytes.Buffer
	most int
	drop bool
	full bool
}

var errFull = errors.New("too much output")

// Write keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.text.Len()
	if len(p) <= room {
		return b.text.Write(p)
	}
	if b.full = true; !b.drop {
		return 0, errFull
	}
	b.text.Write(p[:max(room, 0)])
	return len(p), nil
}
