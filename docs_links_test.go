package agentctl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// document is a page that readers read, with the links and headings in it.
type document struct {
	file, text string
}

// documents returns every page of the tree that is written for readers.
func documents(t *testing.T) []document {
	t.Helper()
	files := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "policies/README.md"}
	for _, pattern := range []string{"docs/*.md", "manifests/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	var all []document
	for _, file := range files {
		all = append(all, document{file, string(read(t, file))})
	}
	if len(all) < 15 {
		t.Fatalf("%d documents found", len(all))
	}
	return all
}

// prose is the text without what stands in fences, line for line.
func (d document) prose() []string {
	var lines []string
	fenced := false
	for line := range strings.SplitSeq(d.text, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced, line = !fenced, ""
		}
		if fenced {
			line = ""
		}
		lines = append(lines, line)
	}
	return lines
}

// anchors are the names that a browser gives to the headings.
func (d document) anchors() []string {
	var names []string
	for _, line := range d.prose() {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	}
	return names
}

var (
	link   = regexp.MustCompile(`\[[^][]*\]\(([^()\s]+)\)`)
	inCode = regexp.MustCompile("`[^`]*`")
)

// broken tells of every link of the documents that leads nowhere.
func broken(all []document) (problems []string, links int) {
	for _, d := range all {
		for i, line := range d.prose() {
			// A link may be named by code, and code may look like a link.
			for _, m := range link.FindAllStringSubmatch(inCode.ReplaceAllString(line, "x"), -1) {
				links++
				if problem := leadsNowhere(all, d.file, m[1]); problem != "" {
					problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", d.file, i+1, m[1], problem))
				}
			}
		}
	}
	return problems, links
}

func leadsNowhere(all []document, from, to string) string {
	if strings.Contains(to, "://") {
		return "" // the network is not asked
	}
	path, anchor, _ := strings.Cut(to, "#")
	file := from
	if path != "" {
		file = filepath.ToSlash(filepath.Join(filepath.Dir(from), path))
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	at := slices.IndexFunc(all, func(d document) bool { return d.file == file })
	if at < 0 || !slices.Contains(all[at].anchors(), anchor) {
		return "there is no such heading"
	}
	return ""
}

// TestIndexListsEveryPage: docs/README.md sorts all pages, each once.
func TestIndexListsEveryPage(t *testing.T) {
	index := string(read(t, "docs/README.md"))
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if n := strings.Count(index, "| ["); name != "README.md" && strings.Count(index, "]("+name+") |") != 1 {
			t.Errorf("docs/README.md has %d rows, and not one for %s", n, name)
		}
	}
}

func TestLinksInDocsLeadSomewhere(t *testing.T) {
	problems, links := broken(documents(t))
	for _, p := range problems {
		t.Error(p)
	}
	if links < 80 {
		t.Errorf("%d links found: the search misses some", links)
	}
}

// TestCheckOfLinksBites: a check that lets everything pass finds nothing.
func TestCheckOfLinksBites(t *testing.T) {
	const at = "docs/start.md"
	for text, bad := range map[string]bool{
		"[a](install.md)":                    false,
		"[a](nowhere.md)":                    true,
		"[`a`](nowhere.md)":                  true,
		"[a](#a-b)\n\n## A `b`!":             false,
		"[a](#a-c)\n\n## A `b`!":             true,
		"[a](start.md#a-b)\n```\n# A b\n```": true,
		"`[a](nowhere.md)`":                  false,
		"```\n[a](nowhere.md)\n```":          false,
		"[a](https://example.com/x#y)":       false,
	} {
		if problems, _ := broken([]document{{at, text}}); (len(problems) > 0) != bad {
			t.Errorf("%q: %q, want a problem: %v", text, problems, bad)
		}
	}
}

// TestEveryPageLeadsOn: a page begins with what it is for, ends with where to go
// next, and is found from the README.
func TestEveryPageLeadsOn(t *testing.T) {
	readme := string(read(t, "README.md"))
	for _, d := range documents(t) {
		if filepath.Dir(d.file) != "docs" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(d.text), "\n")
		if len(lines) < 5 || !strings.HasPrefix(lines[0], "# ") || lines[1] != "" || !unicode.IsLetter([]rune(strings.TrimLeft(lines[2], "`"))[0]) {
			t.Errorf("%s does not begin with a title and a sentence that says what it is for", d.file)
		}
		at := slices.Index(lines, "## Next")
		if at < 0 || len(lines)-at > 8 || !link.MatchString(strings.Join(lines[at:], "\n")) {
			t.Errorf("%s does not end with a section Next that leads on", d.file)
		}
		if !strings.Contains(readme, "("+d.file+")") {
			t.Errorf("README.md does not lead to %s", d.file)
		}
	}
}
