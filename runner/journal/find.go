package journal

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/statedir"
)

// Latest is the reference to the run that was started last, runs of subagents left out.
const Latest = "@latest"

// maxRun bounds the id of a run, which is a folder's name.
const maxRun = 201

// validRun takes lower-case letters, digits, and behind the first also "." and
// "-": nothing that leads out of a folder.
func validRun(id string) bool {
	if id == "" || len(id) > maxRun {
		return false
	}
	for i := range len(id) {
		c := id[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return true
}

// NotFoundError reports that a reference names no run, or more than one.
type NotFoundError struct {
	Ref     string
	Problem string
	// Near are runs the writer may have meant.
	Near []string
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("run %q: %s", e.Ref, e.Problem)
	if len(e.Near) > 0 {
		msg += ": " + strings.Join(e.Near, ", ")
	}
	return msg
}

// Found is a run that has a journal.
type Found struct {
	ID  string
	Dir string
	// Started is the time of the first event.
	Started time.Time
	// Parent is the run whose call has started this one; "" for any other, UnknownParent
	// where that was never written.
	Parent string
}

// UnknownParent is the Parent of a run that was interrupted before it began.
const UnknownParent = "?"

// Dir returns the folder of a run.
func Dir(stateDir, run string) string { return filepath.Join(stateDir, "runs", run) }

// List returns the runs of a state folder, the newest first.
func List(stateDir string) ([]Found, error) {
	ids, err := runIDs(stateDir)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, id := range ids {
		if f, ok := look(stateDir, id); ok {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID))
	})
	return found, nil
}

func runIDs(stateDir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && validRun(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// look reads no more than the first event: a list of runs costs one small read each.
func look(stateDir, id string) (Found, bool) {
	dir := Dir(stateDir, id)
	files, err := dayFiles(dir)
	if err != nil || len(files) == 0 {
		return Found{}, false
	}
	f := Found{ID: id, Dir: dir}
	in, err := statedir.OpenFile(filepath.Join(dir, files[0]), os.O_RDONLY)
	if err != nil {
		return Found{}, false
	}
	defer in.Close() //nolint:errcheck // nothing was written
	var e event.Event
	var buf []byte
	if line, err := readLine(bufio.NewReader(in), &buf); err == nil && e.UnmarshalJSON(line) == nil {
		f.Started = e.Time
		if d, ok := e.Data.(event.RunStarted); ok && d.Parent != nil {
			f.Parent = d.Parent.Run
		}
	} else if info, err := in.Stat(); err == nil {
		f.Started = info.ModTime()
		if looksLikeChild(id) {
			f.Parent = UnknownParent
		}
	}
	return f, true
}

// Children calls see with each run that a call of another run has started and that is not
// in skip. What is known already costs no read.
func Children(stateDir string, skip func(id string) bool, see func(Found)) error {
	ids, err := runIDs(stateDir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !looksLikeChild(id) || skip(id) {
			continue
		}
		if f, ok := look(stateDir, id); ok && f.Parent != "" && f.Parent != UnknownParent {
			see(f)
		}
	}
	return nil
}

// FindRun returns the run that ref names: its id, run/ and its id, the
// beginning of exactly one id, or @latest.
func FindRun(stateDir, ref string) (Found, error) {
	name := strings.TrimPrefix(ref, "run/")
	if name != Latest && !validRun(name) {
		return Found{}, &NotFoundError{Ref: ref, Problem: "no run can have this name"}
	}
	if name == Latest {
		all, err := List(stateDir)
		all = slices.DeleteFunc(all, func(f Found) bool { return f.Parent != "" })
		if err != nil || len(all) > 0 {
			return first(all), err
		}
		return Found{}, noRuns(stateDir, ref)
	}
	if f, ok := look(stateDir, name); ok {
		return f, nil
	}
	if info, err := os.Stat(Dir(stateDir, name)); err == nil && info.IsDir() {
		return Found{}, &NotFoundError{Ref: ref, Problem: ErrEmpty.Error()}
	}
	ids, err := runIDs(stateDir)
	if err != nil {
		return Found{}, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { _, ok := look(stateDir, id); return !ok })
	var match []string
	for _, id := range ids {
		if strings.HasPrefix(id, name) {
			match = append(match, id)
		}
	}
	switch {
	case len(ids) == 0:
		return Found{}, noRuns(stateDir, ref)
	case len(match) == 1:
		f, _ := look(stateDir, match[0])
		return f, nil
	case len(match) > 1:
		return Found{}, &NotFoundError{Ref: ref, Problem: fmt.Sprintf("%d runs begin like this", len(match)), Near: match[:min(len(match), 5)]}
	}
	return Found{}, &NotFoundError{Ref: ref, Problem: "there is no such run; the nearest are", Near: nearest(ids, name)}
}

func first(all []Found) Found {
	if len(all) == 0 {
		return Found{}
	}
	return all[0]
}

func noRuns(stateDir, ref string) error {
	return &NotFoundError{Ref: ref, Problem: "there are no runs in " + filepath.Join(stateDir, "runs")}
}

// nearest returns the three ids that differ least from name.
func nearest(ids []string, name string) []string {
	return reason.Sorted(name, ids)[:min(len(ids), 3)]
}

// Files are the files that the journal of a run consists of, as paths below its folder: the
// events, their end, the blobs, and those that are projected from the events.
func Files(dir string, projected ...string) ([]string, error) {
	names, err := dayFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{anchorFile}, projected...) {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, blobFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the blobs: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), blobTemp) {
			names = append(names, blobFolder+"/"+e.Name())
		}
	}
	return names, nil
}

// OfRun reports whether a path is one that Files may return, below the folder of a run.
func OfRun(path, dir string, projected ...string) bool {
	name, below := strings.CutPrefix(path, dir+"/")
	id, blob := strings.CutPrefix(name, blobFolder+"/")
	switch {
	case !below:
		return false
	case blob:
		return len(id) == 64 && strings.Trim(id, "0123456789abcdef") == ""
	}
	return isDayFile(name) || name == anchorFile || slices.Contains(projected, name)
}
