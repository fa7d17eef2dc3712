package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Command lines of agentd stand in blocks and between backquotes.
var commandLine = regexp.MustCompile("(?m)(?:^|`|\\$\\()agentd ((?:serve|stop|token|version|completion)[^#`)\n]*)")

func TestCommandsInDocsExist(t *testing.T) {
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	root := (&app{}).rootCmd()
	found := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandLine.FindAllStringSubmatch(string(text), -1) {
			found++
			words := strings.Fields(m[1])
			cmd, rest, err := root.Find(words)
			if err != nil || cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("%s: agentd %s: there is no such verb", filepath.Base(name), m[1])
				continue
			}
			for _, w := range rest {
				if flag, is := strings.CutPrefix(w, "--"); is && cmd.Flag(flag) == nil && cmd.InheritedFlags().Lookup(flag) == nil {
					t.Errorf("%s: agentd %s: there is no %s", filepath.Base(name), m[1], w)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d command lines found: the search misses what the docs show", found)
	}
}
