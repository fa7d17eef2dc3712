package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// notRun are the reasons for which a block of commands is not run here, with what would
// be needed. CONTRIBUTING.md lists them.
var notRun = map[string]string{
	"builds":   "builds or measures this tree, for minutes",
	"installs": "changes the machine, or needs root on it",
	"network":  "fetches something, or sends it to a registry",
	"cluster":  "needs a control plane or a cluster that is not this machine's",
	"person":   "needs a person at a terminal or a browser, or serves until it is stopped",
}

// block is a fence of a page.
type block struct {
	page string
	// line of the fence, from 1.
	line int
	// language is what stands behind the fence.
	language string
	text     string
	// skip is the reason of a mark before it; "" where there is none.
	skip string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// commands reports whether the block is one of commands.
func (b block) commands() bool { return slices.Contains([]string{"sh", "console"}, b.language) }

// step is one command of a block, with what the page shows of its output.
type step struct {
	text  string
	shown []string
	// compared is false where the page shows no output.
	compared bool
}

// docsPages are the pages whose commands are run, from the root of the repository.
func docsPages(t testing.TB) []string {
	t.Helper()
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "manifests/*/README.md", "plugins/*/README.md", "plugins/*/*/README.md", "plugins/*/*/*/README.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(f), "../../"))
		}
	}
	return pages
}

func pageBlocks(t testing.TB, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parsePage(page, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// parsePage finds the fences of a page. A mark has to stand on the line before its block.
func parsePage(page, text string) ([]block, error) {
	var blocks []block
	var open *block
	var lines []string
	skip, indent := "", ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		if open != nil {
			if strings.TrimRight(trimmed, " ") == "```" {
				open.text = strings.Join(append(lines, ""), "\n")
				blocks, open = append(blocks, *open), nil
				continue
			}
			lines = append(lines, strings.TrimPrefix(line, indent))
			continue
		}
		reason, marked := strings.CutPrefix(trimmed, "<!-- not run: ")
		language, fence := strings.CutPrefix(trimmed, "```")
		switch {
		case skip != "" && !fence:
			return nil, fmt.Errorf("%s:%d: a mark \"not run\" has to stand right before a block", page, i)
		case marked:
			skip = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(reason), "-->"))
			if notRun[skip] == "" {
				return nil, fmt.Errorf("%s:%d: %q is no reason for a block that is not run; CONTRIBUTING.md has them", page, i+1, skip)
			}
		case fence:
			open = &block{page: page, line: i + 1, language: strings.TrimSpace(language), skip: skip}
			lines, skip, indent = nil, "", line[:len(line)-len(trimmed)]
			if open.skip != "" && !open.commands() {
				return nil, fmt.Errorf("%s: only commands are run, and marked as not run", open)
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block has no end", open)
	}
	return blocks, nil
}

// steps are the commands of a block, in order.
func (b block) steps() ([]step, error) {
	if b.language == "sh" {
		statements, err := statements(b.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b, err)
		}
		var steps []step
		for _, text := range statements {
			steps = append(steps, step{text: text})
		}
		return steps, nil
	}
	var steps []step
	for line := range strings.SplitSeq(strings.TrimSuffix(b.text, "\n"), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case is:
			if all, err := statements(command); err != nil || len(all) != 1 {
				return nil, fmt.Errorf("%s: %q is not one command: %w", b, command, err)
			}
			steps = append(steps, step{text: command})
		case len(steps) == 0:
			return nil, fmt.Errorf("%s: a console begins with \"$ \" and a command", b)
		default:
			last := &steps[len(steps)-1]
			last.shown, last.compared = append(last.shown, line), true
		}
	}
	return steps, nil
}

// statements are the commands of a script that stand one after the other.
func statements(script string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range file.Stmts {
		all = append(all, script[s.Pos().Offset():s.End().Offset()])
	}
	return all, nil
}

// steady replaces what differs from run to run: times, ids, hashes, folders, and the
// number of spaces between columns.
func steady(text string) string {
	for _, s := range []struct{ pattern, with string }{
		{`sha256:[0-9a-f…]+(\.\.\.)?`, "HASH"},
		{`\b([a-z-]+)-01[a-z0-9]+(\b|\.\.\.|…)`, "$1-ID"},
		{`\b[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:]+(\.[0-9]+Z)?)?`, "DATE"},
		{`\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b`, "TIME"},
		{`\b[0-9]+(\.[0-9]+)?(µs|ms|s|m|h)([0-9.]+s)?(\s|$)`, "0s$4"},
		{`\b[a-z]+-[0-9a-f]{12}\b`, "NAME"},
		{`(^|\s)/[^\s)]+`, "$1PATH"},
		{`[ \t]+`, " "},
	} {
		text = regexp.MustCompile(s.pattern).ReplaceAllString(text, s.with)
	}
	return strings.TrimSpace(text)
}

// fits reports whether lines have the shape of those that are shown: "..." alone stands for
// any lines, "..." or "…" in a line for any text.
func fits(shown, got []string) bool {
	if len(shown) == 0 {
		return len(got) == 0
	}
	if first := strings.TrimSpace(shown[0]); first == "..." || first == "…" {
		return fits(shown[1:], got) || len(got) > 0 && fits(shown, got[1:])
	}
	return len(got) > 0 && lineFits(shown[0], got[0]) && fits(shown[1:], got[1:])
}

func lineFits(shown, got string) bool {
	pattern := regexp.QuoteMeta(steady(shown))
	pattern = strings.NewReplacer(regexp.QuoteMeta("..."), ".*", "…", ".*").Replace(pattern)
	return regexp.MustCompile("^" + pattern + "$").MatchString(steady(got))
}

// TestCheckOfShownOutputBites: a check that lets everything pass finds nothing.
func TestCheckOfShownOutputBites(t *testing.T) {
	cases := map[string]struct {
		reason     string
		shown, got []string
		want       bool
	}{
		"same":         {"what is shown is printed", []string{"ok  a  3 steps"}, []string{"ok a  3 steps"}, true},
		"time and id":  {"they differ from run to run", []string{"run/a-01m8f0bjwm34fxjn0s24e9176g  71ms"}, []string{"run/a-01m8h1n70cmkxgmtz0w5ayj6mm  1.2s"}, true},
		"left out":     {"any lines", []string{"a", "...", "d"}, []string{"a", "b", "c", "d"}, true},
		"in a line":    {"any text", []string{"a ... c"}, []string{"a b c"}, true},
		"another word": {"the program says something else", []string{"denied by p/x"}, []string{"denied by p/y"}, false},
		"another code": {"a number is no time", []string{"3 steps"}, []string{"4 steps"}, false},
		"more":         {"lines that are not shown", []string{"a"}, []string{"a", "b"}, false},
		"less":         {"a line that is not printed", []string{"a", "b"}, []string{"a"}, false},
	}
	for name, c := range cases {
		if got := fits(c.shown, c.got); got != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
}

func TestMarksAreHeld(t *testing.T) {
	for text, wrong := range map[string]string{
		"<!-- not run: network -->\n```sh\nls\n```\n":     "",
		"<!-- not run: no time -->\n```sh\nls\n```\n":     "is no reason",
		"<!-- not run: network -->\n\n```sh\nls\n```\n":   "right before a block",
		"<!-- not run: network -->\n```yaml\na: 1\n```\n": "only commands",
		"```sh\nls\n": "has no end",
	} {
		_, err := parsePage("p.md", text)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: %v, want %q", text, err, wrong)
		}
	}
}
