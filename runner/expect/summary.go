package expect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostSummed bounds the entries that a summary names.
const mostSummed = 12

// summaries say what a list of the run holds in fewer words than its JSON.
var summaries = map[string]func(v any) []string{
	"calls": func(v any) []string {
		return each(v, func(c map[string]any) string {
			text := fmt.Sprintf("%s %s", c["tool"], clipped(plain(c["args"]), 60))
			for _, part := range []string{"decision", "error"} {
				if word, _ := c[part].(string); word != "" {
					text += " " + word
				}
			}
			return text
		})
	},
	"decisions": func(v any) []string {
		return each(v, func(d map[string]any) string { return fmt.Sprintf("%s %s by %s", d["tool"], d["action"], d["rule"]) })
	},
	"children": func(v any) []string {
		return each(v, func(c map[string]any) string { return fmt.Sprintf("%s %s", c["agent"], c["phase"]) })
	},
	"files": func(v any) (all []string) {
		files, _ := v.(map[string]any)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if f, ok := files[path].(map[string]any); ok {
				all = append(all, fmt.Sprintf("%s %s", path, f["change"]))
			}
		}
		return all
	},
	"events": func(v any) (all []string) {
		counts := map[string]int{}
		for _, t := range each(v, func(e map[string]any) string { return fmt.Sprint(e["type"]) }) {
			counts[t]++
		}
		for _, t := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, fmt.Sprintf("%d %s", counts[t], t))
		}
		return all
	},
}

func each(v any, text func(map[string]any) string) (all []string) {
	list, _ := v.([]any)
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			all = append(all, text(m))
		}
	}
	return all
}

// summary is a list of the run in a few words; false for anything else.
func summary(name string, values map[string]any) (string, bool) {
	of, ok := summaries[name]
	if !ok {
		return "", false
	}
	all := of(values[name])
	if len(all) == 0 {
		return "none", true
	}
	text := strings.Join(all[:min(len(all), mostSummed)], "; ")
	if more := len(all) - mostSummed; more > 0 {
		text += fmt.Sprintf("; %d more", more)
	}
	return text, true
}

// plain is a value as JSON, with < and > as they are.
func plain(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it was decoded from JSON
	return strings.TrimSpace(b.String())
}

func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
