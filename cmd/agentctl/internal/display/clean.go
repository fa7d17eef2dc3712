package display

import (
	"strings"

	"agentctl.dev/agentctl/api/safetext"
)

// Clean returns untrusted text for a terminal: every character that would be
// hidden or obeyed is named, as in the prompt for an approval. Line breaks and
// tabs stay.
func Clean(s string) string {
	return safetext.Visible(strings.ReplaceAll(s, "\r\n", "\n"), safetext.Prose)
}

// Line returns text as one cleaned line: every run of white space is one space.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// hidden reports whether Clean would name a character.
func hidden(r rune) bool { return safetext.Hidden(r, safetext.Prose) }
