package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// failure is a command that was not decided, recognised or contained as wanted.
type failure struct {
	Part    string `json:"part"`
	ID      string `json:"id,omitempty"`
	Policy  string `json:"policy,omitempty"`
	Command string `json:"command"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	// Why names the rule and its reason, or what the facts show.
	Why string `json:"why"`
}

func (r *report) fail(f failure) {
	f.Part = r.part
	r.Failures = append(r.Failures, f)
}

// String is a line: what was wanted and what came, then the command as a quoted text.
func (f failure) String() string {
	return strings.Join([]string{f.ID, f.Policy, "want " + f.Want, "got " + f.Got, short(f.Command), strings.ReplaceAll(f.Why, "\n", " ")}, "\t")
}

// writeFailures writes the failures of a part into a folder, if one is named.
func (r *report) writeFailures(dir, part string) error {
	if dir == "" {
		return nil
	}
	var text strings.Builder
	for _, f := range r.Failures {
		if f.Part == part {
			fmt.Fprintln(&text, f)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("list the failures: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "failures-"+part+".txt"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("list the failures: %w", err)
	}
	return nil
}
