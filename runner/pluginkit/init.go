package pluginkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/examples"
)

// Languages lists the languages in which Init begins a tool.
func Languages() []string { return examples.Languages() }

// InitOptions describe the project to create.
type InitOptions struct {
	// Name of the tool: lower-case letters, digits and dashes. Required.
	Name string
	// Language is one of Languages. Required.
	Language string
	// Dir is the folder to write; default one of the tool's name. It must not hold
	// anything yet.
	Dir string
	// SDK is a folder with this module's source, for a Go tool: where no released
	// version of it can be had. Optional.
	SDK string
}

var toolName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
})

// Init writes a small tool that works and passes Test, and returns
// the paths of its files. Its errors are a *reason.UsageError, or about the disk.
func Init(o InitOptions) ([]string, error) {
	if !toolName().MatchString(o.Name) {
		return nil, reason.Usagef("%q cannot be a tool's name", o.Name).WithHint("lower-case letters, digits and dashes, 63 at most, a letter first")
	}
	project, err := examples.Project(o.Language, o.Name)
	if err != nil {
		return nil, reason.Usagef("%w", err)
	}
	if o.Language == "go" {
		mod, err := goMod(o.Name, o.SDK)
		if err != nil {
			return nil, err
		}
		project = append(project, examples.File{Path: "go.mod", Text: mod})
	} else if o.SDK != "" {
		return nil, reason.Usagef("only a tool in Go is built with the SDK's source")
	}
	if o.Dir == "" {
		o.Dir = o.Name
	}
	return writeProject(o.Dir, project)
}

// writeProject writes files into a folder that holds nothing: what a person has
// written is never lost.
func writeProject(dir string, project []examples.File) ([]string, error) {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return nil, reason.Usagef("folder %s is not empty", dir).WithHint("name another one with --dir")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, reason.Usagef("folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("begin a tool: %w", err)
	}
	var paths []string
	for _, f := range project {
		mode := os.FileMode(0o644)
		if f.Program {
			mode = 0o755
		}
		path := filepath.Join(dir, f.Path)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return nil, fmt.Errorf("begin a tool: %w", err)
		}
		_, err = file.Write(f.Text)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("begin a tool: write %s: %w", path, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// module is the path under which the SDK is found.
const module = "agentctl.dev/agentctl"

// goMod is the go.mod of a tool in Go.
func goMod(name, sdk string) ([]byte, error) {
	if sdk == "" {
		version := sdkVersion()
		if version == "" {
			return nil, reason.Usagef("this build of agentctl has no released SDK").WithHint("name a clone of its source with --sdk FOLDER")
		}
		return fmt.Appendf(nil, "module %s\n\ngo 1.26\n\nrequire %s %s\n", name, module, version), nil
	}
	folder, err := filepath.Abs(sdk)
	if err != nil {
		return nil, reason.Usagef("--sdk %s: %w", sdk, err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		return nil, reason.Usagef("%s does not hold the source of %s", sdk, module).WithHint("--sdk names a clone of it")
	}
	return fmt.Appendf(nil, "module %s\n\ngo 1.26\n\nrequire %s v0.0.0\n\nreplace %s => %q\n", name, module, module, folder), nil
}

// sdkVersion is the released version of the module this program was built from,
// or "".
func sdkVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	version := info.Main.Version
	if info.Main.Path != module {
		for _, d := range info.Deps {
			if d.Path == module {
				version = d.Version
			}
		}
	}
	if !strings.HasPrefix(version, "v") || strings.HasPrefix(version, "v0.0.0-") || strings.Contains(version, "+") {
		return "" // built from a clone: the version is not published
	}
	return version
}
