package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// The modules of a release, and where their source is. A release of one is a release of both.
const (
	rootModule = "agentctl.dev/agentctl"
	sdkModule  = "agentctl.dev/agentctl/plugins/sdk"
	sdkFolder  = "plugins/sdk"
)

// checkRequired refuses a source whose go.mod names another version of the SDK than the one
// that is released with it: go install would build other bytes than this does.
func (o *Options) checkRequired(src *source) error {
	text, err := os.ReadFile(filepath.Join(src.Dir, "go.mod"))
	if err != nil {
		return err
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	if len(f.Replace) > 0 {
		return errors.New("go.mod replaces a module: go install PROGRAM@VERSION refuses such a module")
	}
	for _, r := range f.Require {
		if r.Mod.Path == sdkModule && r.Mod.Version != o.Version {
			return fmt.Errorf("go.mod requires %s %s: go mod edit -require=%s@%s, then commit it", sdkModule, r.Mod.Version, sdkModule, o.Version)
		}
	}
	return nil
}

// modules writes the modules as a server of the GOPROXY protocol has them; a folder of files
// is one, too.
func (o *Options) modules(src *source, dir string) error {
	for path, folder := range map[string]string{rootModule: ".", sdkModule: sdkFolder} {
		if err := o.module(src, module.Version{Path: path, Version: o.Version}, filepath.Join(src.Dir, filepath.FromSlash(folder)), dir); err != nil {
			return fmt.Errorf("module %s: %w", path, err)
		}
	}
	return nil
}

func (o *Options) module(src *source, m module.Version, from, dir string) (err error) {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": src.Time})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"list": []byte(m.Version + "\n"), m.Version + ".info": info, m.Version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return zip.CreateFromDir(out, m, from)
}
