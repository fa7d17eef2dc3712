package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

const (
	// mostDiffs bounds the files of a recap, mostTitle the characters of its title.
	mostDiffs, mostTitle = 200, 100
)

// recap notes in the first message of the user what a summary says of the conversation.
func (r *Run) recap(summary string) {
	i := slices.IndexFunc(r.Messages, func(m *message.Message) bool { return m.Role == message.RoleUser })
	if i < 0 || summary == "" {
		return
	}
	r.Messages[i].Recap = &message.Recap{Title: titleOf(summary), Body: summary, Diffs: r.diffs()}
}

// titleOf is the first line of a summary that is not a heading.
func titleOf(summary string) string {
	for text := range strings.Lines(summary) {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if utf8.RuneCountInString(text) > mostTitle {
			text = string([]rune(text)[:mostTitle-1]) + "…"
		}
		return text
	}
	return ""
}

// diffs adds up what the results of calls say that they have changed.
func (r *Run) diffs() []message.FileDiff {
	type file struct{ Path, Diff string }
	sums := map[string]*message.FileDiff{}
	for _, m := range r.Messages {
		for _, c := range m.Calls() {
			if c.Result == nil || !c.Result.Writes || c.State != message.StateCompleted {
				continue
			}
			var data struct {
				file
				Files []file
			}
			if json.Unmarshal(c.Result.Metadata, &data) != nil {
				continue
			}
			for _, f := range append(data.Files, data.file) {
				if f.Path == "" || sums[f.Path] == nil && len(sums) == mostDiffs {
					continue
				}
				if sums[f.Path] == nil {
					sums[f.Path] = &message.FileDiff{File: f.Path}
				}
				count(sums[f.Path], f.Diff)
			}
		}
	}
	var all []message.FileDiff
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[name])
	}
	return all
}

// count adds the lines of a unified diff, whose first lines name the files.
func count(sum *message.FileDiff, diff string) {
	inside := false
	for text := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(text, "@@"):
			inside = true
		case inside && text[0] == '+':
			sum.Additions++
		case inside && text[0] == '-':
			sum.Deletions++
		}
	}
}
