package tool

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/safetext"
)

// Omission is a function that a program describes and that is offered to no model.
type Omission struct {
	// Name is the program's own. It may hold anything.
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Bounds of what is shown of omissions.
const (
	maxOmissions    = 10
	maxOmissionName = 64
	maxOmissionWhy  = 200
)

// Omitted is the text of a warning about omissions: it names the first of them.
func Omitted(all []Omission) string {
	var b strings.Builder
	for i, o := range all {
		if i == maxOmissions {
			fmt.Fprintf(&b, "; and %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		name := strings.ToValidUTF8(o.Name[:min(len(o.Name), maxOmissionName)], "")
		why := strings.ToValidUTF8(o.Why[:min(len(o.Why), maxOmissionWhy)], "")
		fmt.Fprintf(&b, "%q (%s)", safetext.Visible(name, 0), safetext.Visible(strings.ReplaceAll(why, "\n", " "), safetext.Writing))
	}
	return b.String()
}
