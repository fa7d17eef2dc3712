package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/statedir"
)

// maxReport bounds a stored report.
const maxReport = 256 << 20

// Read reads a report that was written as JSON. Its errors are *reason.UsageError.
func Read(file string) (*Report, error) {
	text, err := statedir.ReadFile(file, maxReport)
	if err != nil {
		return nil, reason.Usagef("baseline: %w", err).WithHint("agentctl test --write-baseline " + file + " writes one")
	}
	out := &Report{}
	err = json.Unmarshal(text, out)
	switch syntax, _ := errors.AsType[*json.SyntaxError](err); {
	case len(text) == 0, errors.Is(err, io.ErrUnexpectedEOF), syntax != nil && syntax.Offset >= int64(len(text)):
		err = errors.New("it is empty or was cut off")
	case err != nil:
		err = fmt.Errorf("it is not a report of agentctl test -o json: %w", err)
	case len(out.Columns) == 0 || len(out.Results) == 0:
		err = errors.New("it is not a report of agentctl test -o json: it has no results")
	}
	if err != nil {
		return nil, reason.Usagef("baseline %s: %w", file, err)
	}
	return out, nil
}

// Write writes the report as JSON. A file that is there is replaced as a whole, unless it is
// something else than a report.
func (r *Report) Write(file string) error {
	if _, err := Read(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; it is not written over", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".agentctl-baseline-*")
	if err != nil {
		return reason.Usagef("write the baseline: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the baseline: %w", err), os.Remove(f.Name()))
	}
	return nil
}
