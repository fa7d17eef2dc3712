package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documents are what readers copy commands from, by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	const root = "../../../.."
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	for _, pattern := range []string{"docs/*/*.md", "manifests/*/README.md", "plugins/*/*/README.md", "plugins/*/*/*/README.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, more...)
	}
	texts := map[string]string{}
	for _, name := range append(names, filepath.Join(root, "README.md"), filepath.Join(root, "SECURITY.md"), filepath.Join(root, "policies", "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimPrefix(filepath.ToSlash(name), root+"/")] = string(text)
	}
	return texts
}

// Command lines stand in blocks, perhaps behind a prompt or a pipe, and in
// sentences between backquotes.
var (
	inBlock    = regexp.MustCompile(`(?:^[ $]*|[|] |next +|bin/)agentctl ([a-z][^#|]*)`)
	inSentence = regexp.MustCompile("`agentctl ([a-z][^`]*)`")
)

// mentioned are the command lines of a document, in words.
func mentioned(text string) [][]string {
	var lines [][]string
	block := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			block = !block
			continue
		}
		pattern := inSentence
		if block {
			pattern = inBlock
		}
		for _, m := range pattern.FindAllStringSubmatch(line, -1) {
			lines = append(lines, strings.Fields(m[1]))
		}
	}
	return lines
}

// misfit says what a command line names that there is not: a verb or a flag.
func misfit(root *cobra.Command, words []string) (path, wrong string) {
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root {
		return "", words[0]
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return cmd.CommandPath(), rest[0]
	}
	for _, w := range rest {
		if w == "--" { // what follows is not of this program
			break
		}
		name, _, _ := strings.Cut(w, "=")
		var f *pflag.Flag
		switch {
		case strings.HasPrefix(w, "--"):
			f = cmd.Flag(name[2:])
		case len(w) == 2 && w[0] == '-' && w[1] >= 'a' && w[1] <= 'z':
			f = cmd.Flags().ShorthandLookup(w[1:])
		default:
			continue
		}
		if f == nil && name != "--help" {
			return cmd.CommandPath(), name
		}
	}
	return cmd.CommandPath(), ""
}

func TestCommandsInDocsExist(t *testing.T) {
	root := (&app{}).rootCmd()
	root.InitDefaultHelpCmd()
	found := 0
	for name, text := range documents(t) {
		for _, words := range mentioned(text) {
			found++
			if path, wrong := misfit(root, words); wrong != "" {
				t.Errorf("%s: agentctl %s: %s has no %s", name, strings.Join(words, " "), path, wrong)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d command lines found: the search misses what the docs show", found)
	}
}

func TestEveryVerbIsInTheDocs(t *testing.T) {
	root := (&app{}).rootCmd()
	var missing []string
	said := map[string]bool{}
	for _, text := range documents(t) {
		for _, words := range mentioned(text) {
			if cmd, _, err := root.Find(words); err == nil {
				said[cmd.CommandPath()] = true
			}
		}
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && !said[cmd.CommandPath()] {
			missing = append(missing, cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
	missing = slices.DeleteFunc(missing, func(path string) bool {
		return path == "agentctl version" || strings.HasPrefix(path, "agentctl completion ") // say what they are
	})
	if len(missing) > 0 {
		t.Errorf("no document shows %s", strings.Join(missing, ", "))
	}
}

// TestCheckOfDocsBites: a check that lets everything pass finds nothing.
func TestCheckOfDocsBites(t *testing.T) {
	cases := map[string]struct{ reason, text, wrong string }{
		"verb":        {"a verb that is gone", "```\nagentctl rnu -f x\n```\n", "rnu"},
		"second verb": {"a verb below a verb", "```\n$ agentctl policy tset -f x\n```\n", "tset"},
		"flag":        {"a flag that is gone", "use `agentctl run -f x --in-plaice`", "--in-plaice"},
		"short flag":  {"a short flag that is none", "```sh\nagentctl run -x y\n```\n", "-x"},
		"behind pipe": {"a command that reads another", "```\necho x | agentctl policy facts --nope\n```\n", "--nope"},
		"good":        {"what is there is fine", "```\nagentctl run -f x --color never -o json # --this is no flag\n```\n", ""},
	}
	root := (&app{}).rootCmd()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			lines := mentioned(c.text)
			if len(lines) != 1 {
				t.Fatalf("found %q", lines)
			}
			if _, wrong := misfit(root, lines[0]); wrong != c.wrong {
				t.Errorf("%s: got %q, want %q", c.reason, wrong, c.wrong)
			}
		})
	}
}
