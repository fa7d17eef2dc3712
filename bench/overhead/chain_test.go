package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// journalOf writes lines that name each other as those of a journal.
func journalOf(n int) []string {
	head := ""
	var lines []string
	for i := range n {
		line := fmt.Sprintf(`{"seq":%d,"type":"run.started","run":"r","prev":%q}`, i+1, head)
		sum := sha256.Sum256([]byte(line))
		head = "sha256:" + hex.EncodeToString(sum[:])
		lines = append(lines, line)
	}
	return lines
}

func TestAJournalThatLostAnEventIsFound(t *testing.T) {
	whole := journalOf(4)
	changed := journalOf(4)
	changed[1] = strings.Replace(changed[1], "run.started", "run.stopped", 1)
	for name, c := range map[string]struct {
		reason string
		days   [][]string
		bad    bool
	}{
		"whole":       {"a chain may go over several files", [][]string{whole[:2], whole[2:]}, false},
		"one is gone": {"a number is missing", [][]string{append(whole[:1:1], whole[2:]...)}, true},
		"begin gone":  {"it does not begin with the first", [][]string{whole[1:]}, true},
		"twice":       {"one stands there twice", [][]string{append(whole[:2:2], whole[1:]...)}, true},
		"changed":     {"the next one names another", [][]string{changed}, true},
		"torn":        {"the last line is half a line", [][]string{append(whole[:3:3], whole[3][:9])}, true},
		"nothing":     {"there are no files", nil, true},
	} {
		dir := t.TempDir()
		for day, lines := range c.days {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("events-2026-01-0%d.jsonl", day+1)), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readChain(dir)
		if (err != nil) != c.bad {
			t.Errorf("%s: %s: %v", name, c.reason, err)
		}
		if !c.bad && (got.events != 4 || got.run != "r" || got.types["run.started"] != 4 || !strings.HasPrefix(got.head, "sha256:")) {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "changed" && !errors.Is(err, errChain) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
