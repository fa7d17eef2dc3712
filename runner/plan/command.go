package plan

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/statedir"
)

// commandsDir is the folder with commands in a folder of manifests, a file each.
const (
	commandsDir = "commands"
	commandEnd  = ".md"
)

// isCommand reports whether a command may be called so: no path leads out of its folder.
func isCommand(name string) bool {
	return name != "" && len(name) <= 63 && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Commands are the names of those in folders of manifests, sorted.
func Commands(paths []string) (names []string) {
	for _, file := range commandFiles(paths) {
		names = append(names, strings.TrimSuffix(filepath.Base(file), commandEnd))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// commandFiles are the files of the commands in folders of manifests, as absolute paths.
func commandFiles(paths []string) (files []string) {
	for _, path := range paths {
		dir, err := filepath.Abs(filepath.Join(path, commandsDir))
		if err != nil {
			continue
		}
		found, err := os.ReadDir(dir)
		if err != nil {
			continue // no folder, or none with commands
		}
		for _, f := range found {
			if name, ok := strings.CutSuffix(f.Name(), commandEnd); ok && isCommand(name) && f.Type().IsRegular() {
				files = append(files, filepath.Join(dir, f.Name()))
			}
		}
	}
	return files
}

// command reads the command of the options, which names the prompt, and perhaps the agent
// and the model.
func (o *Options) command() error {
	if o.Command == "" {
		return nil
	}
	fail := func(format string, args ...any) *reason.UsageError {
		return reason.Usagef("command /%s: "+format, append([]any{o.Command}, args...)...)
	}
	switch {
	case o.Prompt != "":
		return fail("it is the prompt, and another one is given").WithHint("leave -p out: what stands behind the command are its arguments")
	case !isCommand(o.Command):
		return fail("a command is called by lower-case letters, digits and hyphens")
	}
	for _, path := range o.Paths {
		file := filepath.Join(path, commandsDir, o.Command+commandEnd)
		if _, err := os.Lstat(file); err != nil {
			continue
		}
		if o.commandFile != "" {
			return fail("both %s and %s hold it", o.commandFile, file)
		}
		o.commandFile = file
	}
	if o.commandFile == "" {
		known := Commands(o.Paths)
		if len(known) == 0 {
			return fail("there is none").WithHint("a command is a file commands/NAME.md in a folder that -f names")
		}
		hint := "there are: /" + strings.Join(known, ", /")
		if near := manifest.Suggest(o.Command, known); near != "" {
			hint = near
		}
		return fail("there is none").WithHint(hint)
	}
	f, err := statedir.OpenFile(o.commandFile, os.O_RDONLY)
	if err != nil {
		return fail("%w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, 2<<20))
	if err != nil {
		return fail("%w", err)
	}
	if o.template, err = prompt.ParseCommand(text); err != nil {
		return fail("%s: %w", o.commandFile, err)
	}
	if o.Agent == "" {
		o.Agent = o.template.Agent
	}
	if o.Model == "" {
		o.Model = o.template.Model
	}
	return nil
}
