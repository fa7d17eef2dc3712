package manifest

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/spell"
)

// DidYouMean is the sentence that offers another name.
func DidYouMean(name string) string { return fmt.Sprintf("did you mean %q?", name) }

// Suggest returns the sentence for the candidate that a typist most likely
// meant, or "" when none is near.
func Suggest(name string, candidates []string) string {
	n := spell.Nearest(name, candidates)
	if n == "" || n == name || len(name) < 3 && !strings.EqualFold(n, name) {
		return "" // of two letters, one is not a slip but another name
	}
	return DidYouMean(n)
}
