package ci

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// Kinds are the reports that can be written to files.
var Kinds = []string{"junit", "sarif", "summary", "json", "codequality"}

// File is a report and where it goes.
type File struct{ Kind, Path string }

// ParseFiles reads KIND=FILE, several with commas between them.
func ParseFiles(text string) (all []File, err error) {
	for part := range strings.SplitSeq(text, ",") {
		kind, path, ok := strings.Cut(part, "=")
		switch {
		case !ok || path == "":
			return nil, fmt.Errorf("%q is not KIND=FILE, as in junit=run.xml", part)
		case !slices.Contains(Kinds, kind):
			return nil, fmt.Errorf("%q is none of the reports %s", kind, strings.Join(Kinds, ", "))
		}
		all = append(all, File{kind, path})
	}
	return all, nil
}

// Job is the job of a CI system that a run is part of. nil writes nothing.
type Job struct {
	System System
	// Log takes the commands of the system.
	Log    io.Writer
	Getenv func(string) string
	Now    func() time.Time
	// Random is a source of random bytes.
	Random io.Reader
	// Version of this program.
	Version string
	// Agent is the one that was asked for; "" if the manifests hold only one.
	Agent string
	Files []File
}

// Check reports a file that could not be written when the run has ended.
func (j *Job) Check() error {
	for i, f := range j.Files {
		if info, err := os.Stat(filepath.Dir(f.Path)); err != nil || !info.IsDir() {
			return fmt.Errorf("--report %s=%s: the folder is not there", f.Kind, f.Path)
		}
		if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("--report %s=%s: it is not a file", f.Kind, f.Path)
		}
		if slices.ContainsFunc(j.Files[:i], func(g File) bool { return filepath.Clean(g.Path) == filepath.Clean(f.Path) }) {
			return fmt.Errorf("--report %s=%s: the file is named twice", f.Kind, f.Path)
		}
	}
	return nil
}

// sectionName names the part of a log that shows the run.
const sectionName = "agentctl_run"

// Begin opens the part of the log that shows the run.
func (j *Job) Begin() error {
	const head = "agentctl run"
	if j == nil {
		return nil
	}
	switch j.System {
	case GitHub:
		return j.say(command("group", head))
	case GitLab:
		return j.say(section("start", sectionName, head, j.Now()))
	case None, Auto:
	}
	return nil
}

// Close closes that part.
func (j *Job) Close() error {
	if j == nil {
		return nil
	}
	switch j.System {
	case GitHub:
		return j.say(command("endgroup", ""))
	case GitLab:
		return j.say(section("end", sectionName, "", j.Now()))
	case None, Auto:
	}
	return nil
}

func (j *Job) say(text string) error {
	if _, err := io.WriteString(j.Log, text); err != nil {
		return fmt.Errorf("write to the log of the job: %w", err)
	}
	return nil
}

// End closes that part, and writes all reports of the run, which has ended. One that cannot
// be written keeps no other from being written.
func (j *Job) End(r view.Result) error {
	if j == nil {
		return nil
	}
	return errors.Join(j.Close(), j.write(&r))
}

// NotBegun writes all reports of a run that never began, as one that has failed with the
// message.
func (j *Job) NotBegun(why reason.Reason, message string) error {
	if j == nil {
		return nil
	}
	v := view.Run{}
	r := v.Result("")
	r.Agent, r.Phase, r.Reason, r.ExitCode, r.Message = cmp.Or(j.Agent, "none"), view.Failed, string(why), why.ExitCode(), message
	return j.write(&r)
}

func (j *Job) write(r *view.Result) error {
	found, omitted := Findings(r.Structured)
	var errs []error
	for _, f := range j.Files {
		text, err := j.report(f.Kind, r, found, omitted)
		if err == nil {
			err = replace(f.Path, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("report %s: %w", f.Kind, err))
		}
	}
	if j.System == GitHub {
		errs = append(errs, j.github(r, found, omitted))
	}
	return errors.Join(errs...)
}

// report makes a report of a kind.
func (j *Job) report(kind string, r *view.Result, found []Finding, omitted int) ([]byte, error) {
	switch kind {
	case "junit":
		return cases(r)
	case "sarif":
		a := Analysis{Category: r.Agent, Version: j.Version, ExitCode: r.ExitCode, Problem: problem(r), Findings: found}
		return a.SARIF()
	case "summary":
		return summary(r, found, omitted), nil
	case "codequality":
		return quality(found)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("make the report: %w", err)
	}
	return b.Bytes(), nil
}

// github writes the summary, the outputs and the annotations of the step.
func (j *Job) github(r *view.Result, found []Finding, omitted int) error {
	values, err := outputs(r, found, j.Random)
	return errors.Join(
		err,
		j.add("GITHUB_STEP_SUMMARY", summary(r, found, omitted), maxSummary),
		j.add("GITHUB_OUTPUT", []byte(values), 0),
		j.say(annotations(r, found)),
	)
}

// add appends to the file that a variable names, if it does, unless it would be longer than
// a limit then; 0 is none.
func (j *Job) add(variable string, text []byte, limit int64) error {
	path := j.Getenv(variable)
	if path == "" || len(text) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the file of the job
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	info, err := f.Stat()
	if err == nil && limit > 0 && info.Size()+int64(len(text)) > limit {
		const short = "## Run of an agent\n\nIts summary does not fit into that of this step.\n"
		if text = []byte(short); info.Size()+int64(len(text)) > limit {
			text = nil
		}
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return nil
}

// replace writes a file as a whole, or leaves it as it was.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".agentctl-report-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
