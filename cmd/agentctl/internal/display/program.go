package display

import (
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// quietRun is what the renderers for programs have in common: stderr shows
// warnings and why a run did not complete, nothing else.
type quietRun struct {
	mu             sync.Mutex
	stdout, stderr *Screen
	place          Place
}

// Event shows warnings.
func (q *quietRun) Event(e event.Event) {
	if w, ok := e.Data.(event.Warning); ok {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.stderr.print(q.stderr.paint(yellow, "warning:") + " " + Line(w.Message) + "\n")
	}
}

// Notice shows a line on stderr.
func (q *quietRun) Notice(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stderr.print(Line(text) + "\n")
}

func (q *quietRun) fail(run *view.Run) {
	if f := run.Finished; f != nil && f.ExitCode != 0 {
		q.stderr.print(failure(q.stderr, f))
		if f.Phase == view.Suspended {
			for _, call := range run.PendingApprovals {
				q.stderr.print(q.stderr.paint(cyan, "hint:") + " approve with: " + q.place.Approve(run.ID, call) + "\n")
			}
			q.stderr.print(q.stderr.paint(cyan, "hint:") + " continue with: " + q.place.goOn(run.ID) + "\n")
		}
	}
}

// objectRun writes the result as one JSON object.
type objectRun struct{ quietRun }

// Finish writes the object.
func (o *objectRun) Finish(run *view.Run, journal string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(run)
	result := run.Result(journal)
	if o.place.Object != "" {
		result.Object = &view.Object{Namespace: o.place.Home, Name: o.place.Object}
	}
	return writeJSON(o.stdout, result)
}

// linesRun writes each event as it is in the journal.
type linesRun struct {
	quietRun
	broken func(error)

	// out is held while stdout is written to, which may take as long as its reader
	// likes: what is said on stderr does not wait for it.
	out  sync.Mutex
	line []byte
}

// Event writes the line of the event.
func (l *linesRun) Event(e event.Event) {
	l.quietRun.Event(e)
	l.out.Lock()
	defer l.out.Unlock()
	if l.stdout.Err() != nil {
		return
	}
	line, err := e.AppendJSON(l.line[:0])
	if err == nil {
		l.line = append(line, '\n')
		_, err = objects{l.stdout, l.stdout.TTY}.Write(l.line)
	}
	if err != nil && l.broken != nil {
		l.broken(err)
		l.broken = nil
	}
}

// Finish says why the run did not complete.
func (l *linesRun) Finish(run *view.Run, _ string) error {
	l.mu.Lock()
	l.fail(run)
	l.mu.Unlock()
	l.out.Lock()
	defer l.out.Unlock()
	return l.stdout.Err()
}
