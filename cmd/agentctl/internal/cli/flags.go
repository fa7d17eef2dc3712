package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner"
)

// choice is a flag with a closed list of values; the first is the default.
type choice struct {
	value   string
	allowed []string
}

func newChoice(allowed ...string) choice { return choice{allowed[0], allowed} }

func (c *choice) list() string { return strings.Join(c.allowed, ", ") }

// String returns the value.
func (c *choice) String() string { return c.value }

// Set checks and takes a value.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("must be one of %s", c.list())
	}
	c.value = value
	return nil
}

// Type names the flag's type in help.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

func (c *choice) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.allowed, cobra.ShellCompDirectiveNoFileComp
}

// output adds -o with its formats.
func output(cmd *cobra.Command, c *choice, what string) {
	cmd.Flags().VarP(c, "output", "o", what)
	_ = cmd.RegisterFlagCompletionFunc("output", c.complete) // fails only for a flag that is not there
}

// stateFlag adds --state to verbs that look at runs.
func (a *app) stateFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.state, "state", "", "`folder` that holds runs and stored keys (default $AGENTCTL_STATE, else the XDG state folder)")
	_ = cmd.MarkFlagDirname("state") // fails only for a flag that is not there
}

// containerd adds --containerd-address.
func noRepositoryPolicies(cmd *cobra.Command, leaveOut *bool) {
	cmd.Flags().BoolVar(leaveOut, "no-repository-policies", false, "leave out the policies in .agentctl/policies of the workspace, which can only tighten")
}

func containerd(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "containerd-address", "", "`socket` of containerd, for tools that are images (default $CONTAINERD_ADDRESS, else /run/containerd/containerd.sock)")
}

// cassette is the value of --record. A variable of a script that is not set must
// not leave a run unrecorded.
type cassette struct{ value string }

// String returns the value.
func (c *cassette) String() string { return c.value }

// Set checks and takes a value.
func (c *cassette) Set(value string) error {
	if value == "" {
		return errors.New("it names no file")
	}
	c.value = value
	return nil
}

// Type names the flag's type in help.
func (c *cassette) Type() string { return "file" }

// record adds --record.
func record(cmd *cobra.Command, file *cassette) {
	cmd.Flags().Var(file, "record", "`file` that is to hold the run as a cassette when it has ended, for \"agentctl replay\"")
	_ = cmd.MarkFlagFilename("record", "jsonl") // fails only for a flag that is not there
}

// approve adds --approve.
func approve(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "approve", "", "who answers questions: `never|prompt|all|FILE`; all,R3 also for what cannot be undone, FILE with the hashes of calls (default prompt on a terminal, else never)")
	_ = cmd.RegisterFlagCompletionFunc("approve", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"never", "prompt", "all", "all,R3"}, cobra.ShellCompDirectiveDefault
	}) // fails only for a flag that is not there
}

// files adds -f and -k.
func files(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().VarP(&kustomizeList{fileList{paths}}, "kustomize", "k", "manifests: a `folder` with a kustomization, which is built; may be repeated")
	_ = cmd.MarkFlagDirname("kustomize") // fails only for a flag that is not there
	cmd.Flags().VarP(&fileList{paths}, "file", "f", "manifests: a `file`, a folder, or - for stdin; several with commas, or repeated")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // fails only for a flag that is not there
}

// fileList are the paths of -f.
type fileList struct{ paths *[]string }

// Set adds a path, or several with commas between them. A file whose name has a
// comma is taken as it is.
func (l *fileList) Set(text string) error {
	if _, err := os.Lstat(text); err == nil || !strings.Contains(text, ",") {
		*l.paths = append(*l.paths, text)
		return nil
	}
	for path := range strings.SplitSeq(text, ",") {
		if path == "" {
			return errors.New("a path between commas is empty")
		}
		*l.paths = append(*l.paths, path)
	}
	return nil
}

// kustomizeList are the paths of -k, which are read as those of -f.
type kustomizeList struct{ fileList }

// Set adds a folder, which has to hold a kustomization.
func (l *kustomizeList) Set(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() && !runner.Kustomized(dir) {
		return errors.New("it holds no kustomization.yaml; -f reads the manifests of a folder as they are")
	} else if err != nil || !info.IsDir() {
		return errors.New("it is not a folder")
	}
	*l.paths = append(*l.paths, dir)
	return nil
}

// Type is what help calls the value.
func (*kustomizeList) Type() string { return "folder" }

func (l *fileList) String() string { return strings.Join(*l.paths, ",") }

// Type is what help calls the value.
func (*fileList) Type() string { return "file" }

// filesOnly refuses words that are not flags, and says where they belong.
func filesOnly(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if isManifest(args[0]) {
		return usagef("unexpected argument %q: manifests are named with -f %s", args[0], args[0])
	}
	return usagef("unexpected argument %q", args[0])
}

// recursiveFlag adds -R.
func recursiveFlag(cmd *cobra.Command, recursive *bool) {
	cmd.Flags().BoolVarP(recursive, "recursive", "R", false, "with -f: also take the folders below a folder")
}

// filesAlone refuses what manifests exclude.
func filesAlone(args []string, selects bool) error {
	switch {
	case len(args) > 0:
		return usagef("-f and names exclude each other")
	case selects:
		return usagef("-f excludes -A, -l and --field-selector")
	}
	return nil
}

func needFiles(paths []string) error {
	if len(paths) == 0 {
		return usagef("say which manifests with -f FILE, -f FOLDER, -f - or -k FOLDER")
	}
	stdin := 0
	for _, p := range paths {
		switch p {
		case "":
			return usagef("-f must not be empty")
		case "-":
			stdin++
		}
	}
	if stdin > 1 {
		return usagef("-f - may be given once: there is only one stdin")
	}
	return nil
}

// maxPrompt bounds a prompt that is read from a file or from stdin.
const maxPrompt = 1 << 20

// prompt reads the value of -p: a text, @FILE, or - for stdin.
func prompt(value string, stdin io.Reader) (string, error) {
	return words(value, "-p", "the prompt", stdin)
}

// words is a text of the user: the argument itself, from @FILE, or for - from
// stdin. An error calls it what it is.
func words(value, as, what string, stdin io.Reader) (string, error) {
	text, from := value, as
	switch {
	case value == "-":
		b, err := readPrompt(stdin)
		if err != nil {
			return "", usagef("read %s from stdin: %w", what, err)
		}
		text, from = b, what+" on stdin"
	case strings.HasPrefix(value, "@"):
		b, err := promptFile(value[1:])
		if err != nil {
			return "", usagef("read %s: %w", what, err)
		}
		text, from = b, what+" in "+value[1:]
	}
	if !utf8.ValidString(text) {
		return "", usagef("%s is not UTF-8 text", from)
	}
	if strings.TrimSpace(text) == "" {
		return "", usagef("%s is empty", from)
	}
	return text, nil
}

func promptFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	// Opening a FIFO could wait for ever.
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file; pipe it into -p -", path)
	}
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readPrompt(f)
}

func readPrompt(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxPrompt {
		return "", fmt.Errorf("it is longer than 1 MiB")
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// inputs reads the values of --input: key=value each.
func inputs(values []string) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(values))
	for _, v := range values {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, usagef("--input %q is not of the form key=value", v)
		}
		if _, twice := m[key]; twice {
			return nil, usagef("--input %s is given twice", key)
		}
		m[key] = value
	}
	return m, nil
}
