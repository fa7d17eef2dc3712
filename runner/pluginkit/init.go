package pluginkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/examples"
	"agentctl.dev/agentctl/plugins/sdk"
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
	// SDK is a clone of agentctl's source whose SDK a tool in Go uses, instead of the one
	// that this program carries. Optional.
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
		mod, err := goModule(o.Name, o.SDK)
		if err != nil {
			return nil, err
		}
		project = append(project, mod...)
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
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("begin a tool: %w", err)
		}
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

// module is the module of the SDK.
const module = "agentctl.dev/agentctl/plugins/sdk"

// sdkFolder is where the source of the SDK is in a tool's folder.
const sdkFolder = "sdk"

// goModule makes a tool in Go a module: with the SDK of this program in a folder of its own, or
// with that of a clone.
func goModule(name, clone string) ([]examples.File, error) {
	sums, err := sdk.Source.ReadFile("go.sum")
	if err != nil {
		return nil, fmt.Errorf("read the SDK: %w", err)
	}
	folder := "./" + sdkFolder
	if clone != "" {
		if folder, err = cloned(clone); err != nil {
			return nil, err
		}
	}
	mod, err := goMod(name, folder)
	if err != nil {
		return nil, err
	}
	project := []examples.File{{Path: "go.mod", Text: mod}, {Path: "go.sum", Text: sums}}
	if clone != "" {
		return project, nil
	}
	err = fs.WalkDir(sdk.Source, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, "_test.go") {
			return err
		}
		text, err := sdk.Source.ReadFile(p)
		project = append(project, examples.File{Path: path.Join(sdkFolder, p), Text: text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the SDK: %w", err)
	}
	return project, nil
}

// cloned is the folder of the SDK in a clone of agentctl.
func cloned(clone string) (string, error) {
	folder, err := filepath.Abs(filepath.Join(clone, "plugins", "sdk"))
	if err != nil {
		return "", reason.Usagef("--sdk %s: %w", clone, err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		return "", reason.Usagef("%s does not hold the source of %s", clone, module).WithHint("--sdk names a clone of agentctl")
	}
	return folder, nil
}

// goMod is the go.mod of a tool in Go. It requires what the SDK requires, so that the tool is
// built as it is.
func goMod(name, folder string) ([]byte, error) {
	text, err := sdk.Source.ReadFile("go.mod")
	if err != nil {
		return nil, fmt.Errorf("read the SDK: %w", err)
	}
	_, requires, _ := strings.Cut(string(text), "require (")
	var needed strings.Builder
	for line := range strings.Lines(requires) {
		if words := strings.Fields(line); len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			fmt.Fprintf(&needed, "\t%s %s // indirect\n", words[0], words[1])
		}
	}
	return fmt.Appendf(nil, "module %s\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nrequire (\n%s)\n\nreplace %s => %s\n", name, module, needed.String(), module, moduleFolder(folder)), nil
}

// moduleFolder is a path as go.mod has it.
func moduleFolder(folder string) string {
	if strings.ContainsAny(folder, " \t\"'`,()[]") {
		return strconv.Quote(folder)
	}
	return folder
}
