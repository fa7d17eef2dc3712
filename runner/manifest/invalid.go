package manifest

import (
	"fmt"
	"io"
)

// InvalidError reports that manifests hold mistakes.
type InvalidError struct{ Findings Findings }

func (e *InvalidError) Error() string {
	errors, _ := e.Findings.Count()
	if errors == 1 {
		return "the manifests hold a mistake"
	}
	return fmt.Sprintf("the manifests hold %d mistakes", errors)
}

// Write prints at most limit mistakes as a compiler does.
func (e *InvalidError) Write(w io.Writer, limit int) error { return e.Findings.Write(w, limit) }
