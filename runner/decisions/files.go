package decisions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/workspace"
)

// recorded are the states of the files around a decision: the newest one before it, the
// next one after it, and the last one of the turn. "" is none.
type recorded struct {
	before, after, last string
	// failed: the files after a step before could not be recorded. alone: no call of that
	// step had begun, so that they were those of before.
	failed, alone bool
}

// timeline follows the states of the files through a journal.
type timeline struct {
	state string
	// failed: the newest one could not be recorded; began: a call of this step has begun.
	failed, began bool
	// open are decisions whose next state is still to come, all those of this turn.
	open, all []*recorded
}

func (t *timeline) here() *recorded {
	r := &recorded{before: t.state, failed: t.failed, alone: !t.began}
	t.open, t.all = append(t.open, r), append(t.all, r)
	return r
}

func (t *timeline) add(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunResumed:
		if d.Turn != nil && d.Turn.Fresh {
			t.end()
			*t = timeline{}
		}
	case event.RunReverted:
		t.close(t.state)
		t.state = d.Files
	case event.WorkspaceSnapshot:
		if t.failed = d.Error != ""; t.failed {
			for _, r := range t.open {
				r.failed = r.failed || !r.alone
			}
			return
		}
		if d.Step == 0 { // no program has run until then
			for _, r := range t.all {
				if r.before == "" {
					r.before, r.after = d.Snapshot, d.Snapshot
				}
			}
			t.state = d.Snapshot
			return
		}
		t.close(d.Snapshot)
		t.state = d.Snapshot
	case event.StepStart: // the files after the step before are recorded
		t.close(t.state)
		t.began = false
	case event.ToolCall:
		t.began = true
	}
}

func (t *timeline) close(after string) {
	for _, r := range t.open {
		if r.after = after; r.alone {
			r.after = r.before
		}
	}
	t.open = nil
}

// end closes a turn.
func (t *timeline) end() {
	t.close(t.state)
	for _, r := range t.all {
		r.last = t.state
	}
}

// world compares the files of a run as they are now with those that were recorded.
type world struct {
	found  journal.Found
	states map[string]map[workspace.Path]*workspace.Entry
	order  []string
}

// keptStates bounds the states that are held at a time.
const keptStates = 4

func (w *world) state(id string) (map[workspace.Path]*workspace.Entry, error) {
	if s, ok := w.states[id]; ok {
		return s, nil
	}
	read, err := workspace.ReadState(journal.Stored(w.found.Dir), id)
	if err != nil {
		return nil, err
	}
	s := make(map[workspace.Path]*workspace.Entry, len(read.Entries))
	for i := range read.Entries {
		s[read.Entries[i].Path] = &read.Entries[i]
	}
	if w.states == nil {
		w.states = map[string]map[workspace.Path]*workspace.Entry{}
	}
	if len(w.order) == keptStates {
		delete(w.states, w.order[0])
		w.order = w.order[1:]
	}
	w.states[id], w.order = s, append(w.order, id)
	return s, nil
}

// unlike returns why the files that a call was judged by may not be what they are now; ""
// if what the judgement reads of them is the same.
func (w *world) unlike(d *decision, r policy.Reliance) (string, error) {
	dir := d.view.Started.Workspace.Dir
	copied := d.view.Started.Workspace.Strategy == string(v1alpha1.StrategyCopy)
	here, f := isDir(dir), d.files
	switch {
	case len(r.Paths)+len(r.Folders)+len(r.Names)+len(r.Texts) == 0 && r.Contents == "":
		return "", nil
	case f.failed:
		return "the files of that step could not be recorded", nil
	case f.before == "" && here:
		return untouched(dir, r, d.at.Time), nil
	case f.before == "":
		return "the files of the run were not recorded, and its folder is gone", nil
	case r.Contents != "" && (!here || !copied || f.before != f.after || f.before != f.last):
		return "it depends on " + r.Contents + ", which may not be what it was then", nil
	}
	var c comparison
	var err error
	if c.then, err = w.state(f.before); err == nil {
		c.later, err = w.state(f.after)
	}
	if err == nil {
		c.last, err = w.state(f.last)
	}
	if err != nil {
		return "", err
	}
	c.dir, c.own = dir, here && copied
	return c.differs(r), nil
}

// comparison is of the files around a decision with those that are there now.
type comparison struct {
	dir string
	// own: the folder is there, and the run's own.
	own bool
	// then is the state before the decision, later that after its step, last the newest one.
	then, later, last map[workspace.Path]*workspace.Entry
}

// differs returns the first difference that counts, "" for none.
func (c *comparison) differs(r policy.Reliance) string {
	for _, name := range r.Paths {
		if why := c.links(name); why != "" {
			return why
		}
		if r.Listed && !c.listing(name) {
			return c.unlisted(name)
		}
	}
	for _, name := range r.Folders {
		if !c.listing(name) {
			return c.unlisted(name)
		}
	}
	for _, name := range r.Names {
		if why := cmp.Or(c.links(name), c.existence(name)); why != "" {
			return why
		}
	}
	for _, name := range r.Texts {
		if why := cmp.Or(c.links(name), c.text(name)); why != "" {
			return why
		}
	}
	return ""
}

func (c *comparison) unlisted(name string) string {
	return fmt.Sprintf("it depends on which files were in %s, and they are not the same now, or are gone", shown(c.dir, name))
}

// links compares each part of a path that was or is a link.
func (c *comparison) links(name string) string {
	r, ok := relative(c.dir, name)
	if !ok || r == "" {
		return "" // outside of the workspace the journal has nothing; the host is what it is
	}
	parts := strings.Split(string(r), "/")
	for i := range parts {
		part := workspace.Path(strings.Join(parts[:i+1], "/"))
		was, wasLink := targetOf(c.then[part])
		now, nowLink := targetOf(c.later[part])
		target, err := os.Readlink(filepath.Join(c.dir, string(part)))
		switch isLink := err == nil; {
		case wasLink != nowLink || was != now:
			return fmt.Sprintf("%s became a link in that step, or was no longer: it is not known when", part)
		case wasLink && (!isLink || target != was):
			return fmt.Sprintf("%s was a link to %s then, which is gone", part, was)
		case !wasLink && isLink:
			return fmt.Sprintf("%s was not a link then, and is one now", part)
		}
	}
	return ""
}

func targetOf(e *workspace.Entry) (target string, link bool) {
	if e == nil || e.Type != workspace.TypeLink {
		return "", false
	}
	return string(e.Target), true
}

// existence compares whether there is a file of that name.
func (c *comparison) existence(name string) string {
	r, ok := relative(c.dir, name)
	if !ok {
		return ""
	}
	_, err := os.Lstat(filepath.Join(c.dir, string(r)))
	was, now := c.then[r] != nil || r == "", c.later[r] != nil || r == ""
	if was != now || was != (err == nil) {
		return fmt.Sprintf("it depends on whether %s exists, and that has changed", shown(c.dir, name))
	}
	return ""
}

// text compares the content of a file.
func (c *comparison) text(name string) string {
	why := fmt.Sprintf("it depends on the text of %s, which has changed, or is gone", shown(c.dir, name))
	r, ok := relative(c.dir, name)
	was, now := c.then[r], c.later[r]
	if !ok || was == nil || now == nil || was.Hash != now.Hash || was.Size > workspace.MaxKept {
		return why
	}
	b, err := os.ReadFile(filepath.Join(c.dir, string(r)))
	if sum := sha256.Sum256(b); err != nil || was.Hash != "sha256:"+hex.EncodeToString(sum[:]) {
		return why
	}
	return ""
}

// listing reports whether the files below a folder have the names that they had. What is
// not a folder has none.
func (c *comparison) listing(name string) bool {
	r, ok := relative(c.dir, name)
	if !ok || r != "" && (c.then[r] == nil || c.then[r].Type != workspace.TypeDir) {
		return true
	}
	if !c.own || !sameNames(r, c.then, c.later) || !sameNames(r, c.later, c.last) {
		return false
	}
	left := mostLooked
	for p, e := range c.then {
		if !below(p, r) {
			continue
		}
		info, err := os.Lstat(filepath.Join(c.dir, string(p)))
		if left--; left < 0 || err != nil || info.IsDir() != (e.Type == workspace.TypeDir) || (info.Mode()&os.ModeSymlink != 0) != (e.Type == workspace.TypeLink) {
			return false
		}
	}
	return true
}

func below(p, dir workspace.Path) bool {
	return dir == "" || p == dir || strings.HasPrefix(string(p), string(dir)+"/")
}

// sameNames reports whether two states have the same names below a folder.
func sameNames(dir workspace.Path, a, b map[workspace.Path]*workspace.Entry) bool {
	in := func(a, b map[workspace.Path]*workspace.Entry) bool {
		for p, e := range a {
			if o := b[p]; below(p, dir) && (o == nil || o.Type != e.Type || o.Target != e.Target) {
				return false
			}
		}
		return true
	}
	return in(a, b) && in(b, a)
}

// mostLooked bounds the files that are looked at for one call.
const mostLooked = 20_000

// untouched returns which file that counts was changed after a time, or is not there. What
// was not is the file that it was then: no program can set back the time of a change.
func untouched(dir string, r policy.Reliance, at time.Time) string {
	if r.Contents != "" {
		return "it depends on " + r.Contents + ", which the run has not recorded"
	}
	left := mostLooked
	look := func(name string) string {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return fmt.Sprintf("the run has not recorded its files, and %s is not there now", shown(dir, name))
		}
		if left--; left < 0 || !time.Unix(st.Ctim.Unix()).Before(at) {
			return fmt.Sprintf("the run has not recorded its files, and %s was changed since", shown(dir, name))
		}
		return ""
	}
	for _, name := range slices.Concat(r.Paths, r.Folders, r.Names, r.Texts) {
		rel, ok := relative(dir, name)
		if !ok {
			continue
		}
		part := dir
		for next := range strings.SplitSeq(string(rel), "/") {
			if part = filepath.Join(part, next); part == dir {
				continue
			}
			if why := look(part); why != "" {
				return why
			}
		}
		if !r.Listed && !slices.Contains(r.Folders, name) || !isDir(part) {
			continue
		}
		why := ""
		err := filepath.WalkDir(part, func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				why = look(name)
			}
			if err != nil || why != "" {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil || why != "" {
			return cmp.Or(why, shown(dir, part)+" cannot be read")
		}
	}
	return ""
}

func isDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// relative is a path as one in the workspace; ok is false for one outside of it.
func relative(dir, name string) (workspace.Path, bool) {
	r, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(r) {
		return "", false
	}
	if r == "." {
		r = ""
	}
	return workspace.Path(filepath.ToSlash(r)), true
}

func shown(dir, name string) string {
	if r, ok := relative(dir, name); ok && r != "" {
		return string(r)
	}
	if name == dir {
		return "the folder of the run"
	}
	return name
}
