package skill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Entry is a skill that an agent may load. Its text is not kept: it is read when it is
// loaded, and must be the one that the run began with.
type Entry struct {
	// Name is what models and rules call it.
	Name string `json:"name"`
	// Description on one line.
	Description string `json:"description,omitempty"`
	// Dir is its folder on the host, Digest that of its SKILL.md; both are "" for a skill
	// that is a plan alone.
	Dir    string `json:"dir"`
	Digest string `json:"digest"`
	// Image is the image that the folder is from, with its digest, and Folder the path of
	// the folder in it, if the manifest names one; both are "" for a folder of the host.
	Image  string `json:"image,omitempty"`
	Folder string `json:"folder,omitempty"`
	// Workspace is the folder as a path in the workspace, for a skill that lies there; "."
	// is the workspace itself.
	Workspace string `json:"workspace,omitempty"`
	// Around is the workspace as a path in the folder, for a skill whose folder holds it.
	Around string `json:"around,omitempty"`
	// Tool is the tool that runs its script; "" for a skill that is text alone.
	Tool string `json:"tool,omitempty"`
	// Plan are its steps as a model reads them; "" for a skill without a plan.
	Plan string `json:"plan,omitempty"`
}

// MaxList bounds the list of skills in a prompt, in bytes.
const MaxList = 4096

// List are the skills as a prompt has them: sorted, a line each, in at most MaxList bytes.
// Descriptions are shortened for that, the longest first; then skills are left out.
func List(skills []Entry) string {
	if len(skills) == 0 {
		return ""
	}
	skills = Sorted(skills)
	const head = "<skills>\nInstructions for particular work. Load one with the tool skill before you begin such work.\n"
	const foot = "</skills>\n"
	const cutNote = "Descriptions are shortened: the tool skill without a name lists them in full.\n"
	room := MaxList - len(head) - len(foot) - len(cutNote)
	names := 0
	for _, s := range skills {
		names += len("- \n") + len(s.Name)
	}
	shown := len(skills)
	left := func() string { return fmt.Sprintf("- and %d more\n", len(skills)-shown) }
	for shown > 0 && names+len(left()) > room {
		shown--
		names -= len("- \n") + len(skills[shown].Name)
	}
	most := share(skills[:shown], room-names-len(left()))
	var b strings.Builder
	b.WriteString(head)
	cut := shown < len(skills)
	for _, s := range skills[:shown] {
		text := shorten(s.Description, most)
		cut = cut || text != s.Description
		b.WriteString("- " + s.Name)
		if text != "" {
			b.WriteString(": " + text)
		}
		b.WriteString("\n")
	}
	if shown < len(skills) {
		b.WriteString(left())
	}
	if cut {
		b.WriteString(cutNote)
	}
	b.WriteString(foot)
	return b.String()
}

// share returns how long each description may be so that all of them have room.
func share(skills []Entry, room int) int {
	lengths := make([]int, len(skills))
	for i, s := range skills {
		lengths[i] = len(s.Description) + len(": ")
	}
	slices.Sort(lengths)
	for i, n := range lengths {
		if each := room / (len(lengths) - i); n > each {
			return max(0, each-len(": "))
		}
		room -= n
	}
	return 2 * maxDescription
}

// Sorted returns the skills by name.
func Sorted(skills []Entry) []Entry {
	return slices.SortedFunc(slices.Values(skills), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
}

// Full are all skills with their whole descriptions, for a model that asks for them.
func Full(skills []Entry) string {
	var b strings.Builder
	for _, s := range Sorted(skills) {
		b.WriteString("- " + s.Name)
		if s.Description != "" {
			b.WriteString(": " + s.Description)
		}
		b.WriteString("\n")
	}
	return b.String()
}
