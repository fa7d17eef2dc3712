package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/workspace"
)

// revertRecord is the name of the record of a revert in the folder of a run.
const revertRecord = "revert.json"

// RevertOptions name the run and where it is taken back to. Ref, and To or Undo, are
// required.
type RevertOptions struct {
	// Ref is the run as View takes it, State the folder that holds runs.
	Ref, State string
	// To is the place: a message, turn/N or step/N, as moment.Find takes it.
	To string
	// Undo undoes the newest revert instead.
	Undo bool
	// By is who does it, for the journal of the run: for example "jane@pts/3".
	By string
}

// Reverted is a run that was taken back.
type Reverted struct {
	Run string
	// To is the first message that is taken back, Undo says that this was undone.
	To   string
	Undo bool
	// Messages is how many messages are taken back, or are there again.
	Messages int
	// Dir is the folder with the files, Files are those that were changed there.
	Dir   string
	Files []event.FileChange
	// Left are files that others have added: they stay.
	Left []string
	// Effects are what the run did outside, after that message. It stays done.
	Effects []moment.Effect
}

// Revert takes a run that has ended back to a message: the conversation, and the files, all
// or nothing. It is refused when a file is not as the run has left it, when its content
// was not kept, and when others have changed the same file. Only files that the run has
// made are deleted. The next turn makes it permanent.
func Revert(ctx context.Context, o RevertOptions) (_ *Reverted, err error) {
	found, err := journal.FindRun(o.State, o.Ref)
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	j, _, err := trail.Open(ctx, journal.Options{Dir: found.Dir, Run: found.ID})
	if held, ok := errors.AsType[*journal.HeldError](err); ok {
		return nil, (&reason.UsageError{Err: held}).WithHint("wait until it has ended, or stop it: agentctl cancel run/" + found.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("revert run %s: %w", found.ID, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	r := &reverting{o: o, found: found, journal: j}
	if err := r.find(ctx); err != nil {
		return nil, err
	}
	change, err := r.change()
	if err != nil {
		return nil, err
	}
	return r.make(ctx, change)
}

// reverting is a revert on its way.
type reverting struct {
	o       RevertOptions
	found   journal.Found
	journal *journal.Writer
	run     *view.Run
	to      string
	// from and target are the states of the files now, and then.
	from, target string
	events       []event.Event
	messages     int
	left         []string
}

func (r *reverting) refused(format string, args ...any) *reason.UsageError {
	return reason.Usagef("run %s cannot be reverted: %s", r.found.ID, fmt.Sprintf(format, args...))
}

// find finds where the run is taken back to.
func (r *reverting) find(ctx context.Context) error {
	at := r.o.To
	if r.o.Undo {
		at = ""
	}
	m, err := moment.Find(ctx, r.found, at)
	if err != nil {
		return err
	}
	v := m.Run
	r.run, r.from = v, v.FilesState
	id := r.found.ID
	switch {
	case v.Started.Parent != nil:
		return r.refused("it was started by a call of run %s", v.Started.Parent.Run).WithHint("revert that one: agentctl revert run/" + v.Started.Parent.Root + " --to MESSAGE")
	case v.Finished == nil:
		return r.refused("its turn was interrupted").WithHint("end it first: agentctl resume run/" + id)
	case v.Phase == view.Suspended:
		return r.refused("its turn is suspended").WithHint("answer what it waits for (agentctl approve), then: agentctl resume run/" + id)
	case v.InSource:
		return r.refused("its change is in %s already", v.Started.Workspace.Source).WithHint("its files are no longer the run's own; take the change back there: agentctl diff run/" + id + " | git apply -R")
	}
	if r.o.Undo {
		var ok bool
		if r.to, r.target, ok = v.Undoable(); !ok {
			return r.refused("there is no revert to undo; another turn makes one permanent")
		}
		return nil
	}
	if m.Call != "" {
		return r.refused("a call is only part of an answer").WithHint("take it back to the whole answer: --to " + m.Message)
	}
	r.to, r.target, r.messages = m.Message, m.Files.State, following(v, m.Message)
	switch {
	case r.to == "":
		return r.refused("it has no message there").WithHint("agentctl events run/" + id + " shows its messages")
	case r.messages == 0:
		return r.refused("message %s is taken back already", r.to).WithHint("agentctl revert run/" + id + " --undo takes that back")
	case m.Files.Unknown != "":
		return r.refused("how its files were is not known: %s", m.Files.Unknown).WithHint("choose another message: agentctl events run/" + id)
	}
	for _, e := range recordedEvents(ctx, r.found) {
		if e.Seq <= m.Seq {
			continue
		}
		r.events = append(r.events, e)
		if d, ok := e.Data.(event.RunResumed); ok && d.Turn != nil && d.Turn.Fresh && e.Seq > m.Seq+1 {
			return r.refused("its turn %d began with the files of their source, as they were then", d.Turn.Number).
				WithHint("a turn that works in place, or after its change was applied, is as far back as it goes: --to turn/" + fmt.Sprint(d.Turn.Number))
		}
	}
	return nil
}

func recordedEvents(ctx context.Context, found journal.Found) (events []event.Event) {
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return events // it was read a moment ago
		}
		events = append(events, e)
	}
	return events
}

// following counts the messages from one on that are not taken back yet.
func following(v *view.Run, from string) (n int) {
	begun := false
	for _, m := range v.Messages {
		if begun = begun || m.ID == from; begun && m.Error == "" {
			n++
		}
	}
	return n
}

// change is what turns the files into what they were; nil if nothing has to be done.
func (r *reverting) change() (*workspace.Change, error) {
	if r.target == "" || r.from == r.target {
		return nil, nil //nolint:nilnil // no files are to be changed
	}
	from, err := workspace.ReadState(r.journal, r.from)
	if err != nil {
		return nil, fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	to, err := workspace.ReadState(r.journal, r.target)
	if err != nil {
		return nil, fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	earlier, later := r.target, r.from
	if r.o.Undo {
		earlier, later = later, earlier
	}
	others, err := workspace.Foreign(r.journal, earlier, later)
	if err != nil {
		return nil, fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	change := workspace.Between(r.journal, from, to)
	before := change.Named()
	if both := change.Without(others); len(both) > 0 {
		return nil, r.refused("others have changed files while it was executed, which it has changed, too: %s", list(both)).
			WithHint("nothing was changed; take these files back by hand, or fork the run: agentctl fork run/" + r.found.ID + " --at MESSAGE")
	}
	kept := map[string]bool{}
	for _, f := range change.Named() {
		kept[f.Path] = true
	}
	for _, f := range before {
		if !kept[f.Path] {
			r.left = append(r.left, f.Path)
		}
	}
	if unkept := change.Unkept(); len(unkept) > 0 {
		return nil, r.refused("the contents of these files were too large to be kept: %s", list(unkept)).WithHint("nothing was changed")
	}
	return change, nil
}

func list(paths []workspace.Path) string {
	var names []string
	for i, p := range paths {
		if i == 10 {
			names = append(names, fmt.Sprintf("and %d more", len(paths)-i))
			break
		}
		names = append(names, fmt.Sprintf("%q", string(p)))
	}
	return strings.Join(names, ", ")
}

// make changes the files, and records that the run was taken back.
func (r *reverting) make(ctx context.Context, change *workspace.Change) (*Reverted, error) {
	out := &Reverted{Run: r.found.ID, To: r.to, Undo: r.o.Undo, Messages: r.messages, Dir: r.run.Started.Workspace.Dir, Left: r.left}
	if change != nil && !change.Empty() {
		if info, err := os.Stat(out.Dir); err != nil || !info.IsDir() {
			return nil, r.refused("its files were removed, as spec.workspace.retain says").WithHint("agentctl run starts another run")
		}
		err := workspace.Apply(ctx, workspace.Application{Source: out.Dir, Record: filepath.Join(r.found.Dir, revertRecord), Change: change, Blobs: r.journal})
		if _, drift := errors.AsType[*workspace.DriftError](err); drift {
			return nil, reason.New(reason.Internal, "run %s cannot be reverted: files are not as it has left them: %w", r.found.ID, err).
				WithHint("restore these files, or move them away, and try again")
		}
		if err != nil && !errors.Is(err, workspace.ErrApplied) { // a revert that was killed had done it
			return nil, fmt.Errorf("revert run %s: %w", r.found.ID, err)
		}
		out.Files = change.Named()
	}
	if err := r.patch(); err != nil {
		return nil, err
	}
	was := len(visible(r.run))
	e, err := r.journal.Append(event.Event{Data: event.RunReverted{To: r.to, Undo: r.o.Undo, Files: cmp.Or(r.target, r.from), Changed: len(out.Files), By: cmp.Or(r.o.By, "unknown")}})
	if err == nil {
		err = r.run.Apply(e)
	}
	if err != nil {
		return nil, reason.New(reason.Internal, "the files of run %s are reverted, and that is not recorded: %w", r.found.ID, err).
			WithHint("remove the cause, then revert it again")
	}
	if r.o.Undo {
		out.Messages = len(visible(r.run)) - was
	}
	w := r.run.Started.Workspace
	out.Effects = moment.Effects(r.events, nil, w.Strategy == string(v1alpha1.StrategyInPlace))
	return out, nil
}

func visible(v *view.Run) (all []string) {
	for _, m := range v.Messages {
		if m.Error == "" {
			all = append(all, m.ID)
		}
	}
	return all
}

// patch records what the run has changed, with the files as they are now.
func (r *reverting) patch() error {
	if r.run.Snapshot == "" || r.target == "" {
		return nil
	}
	base, err := workspace.ReadState(r.journal, r.run.Snapshot)
	if err != nil {
		return fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	now, err := workspace.ReadState(r.journal, r.target)
	if err != nil {
		return fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	change := workspace.Between(r.journal, base, now)
	change.Strategy = v1alpha1.WorkspaceStrategy(r.run.Started.Workspace.Strategy)
	patch, err := change.Record(r.journal)
	if err == nil {
		_, err = r.journal.Append(event.Event{Data: patch})
	}
	if err != nil {
		return fmt.Errorf("revert run %s: %w", r.found.ID, err)
	}
	return nil
}
