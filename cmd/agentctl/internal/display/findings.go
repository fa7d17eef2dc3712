package display

import "fmt"

// Findings is the report of "validate -o json".
type Findings struct {
	// Documents that were read.
	Documents int `json:"documents"`
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
	// Findings in order; each says severity, position, path and message.
	Findings any `json:"findings"`
}

// NewFindings makes a report of findings of any type; no finding is an empty list.
func NewFindings[T any](documents, errors, warnings int, found []T) Findings {
	return Findings{documents, errors, warnings, append([]T{}, found...)}
}

// WriteFindings writes the report as an object.
func WriteFindings(s *Screen, f Findings) error { return writeJSON(s, f) }

// Valid says that manifests may be used.
func Valid(s *Screen, documents int) error {
	return Text(s, fmt.Sprintf("%s valid", plural(int64(documents), "document")))
}
