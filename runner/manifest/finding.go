package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity decides whether a finding makes a manifest invalid.
type Severity string

// The severities.
const (
	// Error keeps the manifest out.
	Error Severity = "error"
	// Warning is reported; the manifest is valid.
	Warning Severity = "warning"
)

// Position is a place in a file. Line and Col count from 1, Col in characters;
// both are 0 when the finding is about the file as a whole.
type Position struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// String returns file:line:col, or the file alone.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Finding is one mistake, its position and how to fix it.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule names what was looked for; it stays the same from version to version.
	Rule     Rule     `json:"rule"`
	Position Position `json:"position"`
	// Path of the field, for example spec.tools[1].name; "" for the whole document.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Suggestion is a sentence, for example: did you mean "git"?
	Suggestion string `json:"suggestion,omitempty"`
	// Snippet is the line of the manifest, fit for a terminal.
	Snippet string `json:"snippet,omitempty"`
	// See is a command that explains more.
	See string `json:"see,omitempty"`

	// caret is the number of columns before the place in the snippet.
	caret int
}

// Findings are the mistakes of a Load or an admission.
type Findings []Finding

// Sort orders by file, line and column; findings of one place keep their order.
func (f Findings) Sort() {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Position.File, b.Position.File),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Col, b.Position.Col),
		)
	})
}

// HasErrors reports whether one of the findings keeps a manifest out.
func (f Findings) HasErrors() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Severity == Error })
}

// Count returns the number of errors and of warnings.
func (f Findings) Count() (errors, warnings int) {
	for _, x := range f {
		if x.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// fileError is an error about a file as a whole.
func fileError(file, format string, args ...any) Finding {
	return Finding{Severity: Error, Position: Position{File: file}, Message: fmt.Sprintf(format, args...)}
}

// With returns the finding with a suggestion.
func (f Finding) With(suggestion string) Finding {
	f.Suggestion = suggestion
	return f
}

// As returns the finding with the name of what was looked for.
func (f Finding) As(r Rule) Finding {
	f.Rule = r
	return f
}

// At returns the finding with another path: that of a missing field, reported at the
// position of its parent.
func (f Finding) At(path string) Finding {
	f.Path = path
	return f
}
