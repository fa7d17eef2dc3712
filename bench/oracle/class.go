//go:build linux && amd64

package main

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed classes.txt
var classesText string

// mechanism is a way in which scripts do more than their facts.
type mechanism struct {
	name           string
	effect, script *regexp.Regexp
}

// mechanisms reads the format that classes.txt explains.
var mechanisms = sync.OnceValue(func() (all []mechanism) {
	for _, line := range strings.Split(classesText, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  effect "):
			all[len(all)-1].effect = regexp.MustCompile(line[len("  effect "):])
		case strings.HasPrefix(line, "  script "):
			all[len(all)-1].script = regexp.MustCompile(line[len("  script "):])
		default:
			all = append(all, mechanism{name: strings.TrimSuffix(line, ":")})
		}
	}
	return all
})

// class names the mechanism of a finding, "" if none is recognised, and returns the number
// of the effect that shows it.
func class(r result) (name string, effect int) {
	for _, m := range mechanisms() {
		if !m.script.MatchString(r.Script) {
			continue
		}
		if i := slices.IndexFunc(r.Missing, func(e Effect) bool { return m.effect.MatchString(e.String()) }); i >= 0 {
			return m.name, i
		}
	}
	return "", 0
}
