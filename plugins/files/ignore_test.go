package files

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// TestNoRuleIsPassedOverThatMatches compares rules with the patterns alone.
func TestNoRuleIsPassedOverThatMatches(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	several := func(sep string, all ...string) string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = pick(all...)
		}
		return strings.Join(parts, sep)
	}
	matched := 0
	for range 50_000 {
		line := pick("", "", "!", "/") + several("/", "a", "b", "*.o", "*", "**", "a*", "?", "[ab]", `\a`, "a.o", "*.", "", "**.o") + pick("", "", "/", " ", `\ `)
		domain := slices.DeleteFunc([]string{pick("", "", "a")}, func(part string) bool { return part == "" })
		path := strings.Split(several("/", "a", "b", "a.o", "x.o", "a b", "."), "/")
		dir := random.IntN(2) == 0
		r := parseIgnoreRule(line, domain)
		want := gitignore.ParsePattern(line, domain).Match(path, dir)
		if want != gitignore.NoMatch {
			matched++
			if !r.canMatch(path) {
				t.Errorf("pattern %q of %q is passed over for %q", line, domain, path)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d patterns match", matched)
	}
}
