package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/journal"
)

// Target is what a path on the command line means.
type Target struct {
	// Kind is journal, receipt or cassette.
	Kind string
	// Path of the file; Dirs are the folders of runs.
	Path string
	Dirs []string
}

// Look finds out what is at a path: the folder of a run, a folder with such folders (runs, or
// a state folder), a file of a journal, a cassette, or else what may be a receipt.
func Look(path string) (*Target, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reason.Usagef("%w", err)
	}
	if info.IsDir() {
		return lookInto(path)
	}
	if name := filepath.Base(path); isOfJournal(name) {
		return &Target{Kind: KindJournal, Dirs: []string{filepath.Dir(path)}}, nil
	}
	if !info.Mode().IsRegular() { // opening a FIFO could wait for ever
		return nil, reason.Usagef("%s is not a regular file", path)
	}
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, reason.Usagef("%w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	begin := make([]byte, 64)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if bytes.HasPrefix(begin[:n], []byte(`{"cassette":`)) {
		return &Target{Kind: KindCassette, Path: path}, nil
	}
	return &Target{Kind: KindReceipt, Path: path}, nil
}

func isOfJournal(name string) bool {
	return name == "head.json" || name == logName || strings.HasPrefix(name, "events-") && strings.HasSuffix(name, ".jsonl")
}

// lookInto finds the folders of runs in a folder.
func lookInto(dir string) (*Target, error) {
	if isRun(dir) {
		return &Target{Kind: KindJournal, Dirs: []string{dir}}, nil
	}
	for _, in := range []string{dir, filepath.Join(dir, "runs")} {
		entries, err := os.ReadDir(in)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, reason.Usagef("%w", err)
		}
		var dirs []string
		for _, e := range entries {
			if path := filepath.Join(in, e.Name()); e.IsDir() && !strings.HasPrefix(e.Name(), ".") && isRun(path) {
				dirs = append(dirs, path)
			}
		}
		if len(dirs) > 0 {
			slices.Sort(dirs)
			return &Target{Kind: KindJournal, Dirs: dirs}, nil
		}
	}
	return nil, reason.Usagef("there is no journal in %s", dir).WithHint("name the folder of a run, or one with such folders")
}

// isRun reports whether a folder is that of a run. One of which every event was removed is
// still one: its head is there.
func isRun(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isOfJournal(e.Name()) })
}

// FindRun returns the folder of a run of a state folder, also of one whose events are gone.
func FindRun(state, ref string) (string, error) {
	found, err := journal.FindRun(state, ref)
	if err == nil {
		return found.Dir, nil
	}
	if id := strings.TrimPrefix(ref, "run/"); id == filepath.Base(id) {
		if dir := journal.Dir(state, id); isRun(dir) {
			return dir, nil
		}
	}
	return "", &reason.UsageError{Err: err}
}

// VerifyCassette compares a cassette with its hash chain.
func VerifyCassette(_ context.Context, path string) (*Verdict, error) {
	v := &Verdict{Kind: KindCassette, Path: path, Problems: []Problem{}, Notes: []string{}}
	c, err := cassette.Open(path)
	if damage, ok := errors.AsType[*cassette.DamageError](err); ok {
		v.add(Problem{File: filepath.Base(path), Line: int64(damage.Line), Problem: damage.Problem})
	} else if err != nil {
		return nil, err
	}
	if c != nil {
		v.Run = c.Run
	}
	v.settle()
	return v, nil
}
