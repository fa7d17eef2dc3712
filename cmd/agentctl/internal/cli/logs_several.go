package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

// mostLogs is how many runs are shown at once: each that is followed is a connection.
const mostLogs = 50

// runSeveral shows the answers of several runs, each line behind the name of its run.
func (o *logsOptions) runSeveral(ctx context.Context, words []string) error {
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	found, err := o.sources(ctx, words)
	defer func() {
		for _, src := range found {
			src.close()
		}
	}()
	if err != nil {
		return letGo(ctx, err)
	}
	all := &loggedRuns{screen: o.app.stdout(), notices: o.app.stderr()}
	failed := make([]error, len(found))
	group, ctx := errgroup.WithContext(ctx)
	if !o.follow {
		group.SetLimit(1) // in the order in which they were named
	}
	marks := marksOf(found)
	for i, src := range found {
		group.Go(func() error {
			l := &loggedRun{loggedRuns: all, mark: marks[i], follow: o.follow, tail: o.tail}
			var below func(event.Event) error
			if o.children {
				below = l.below
			}
			end, err := readEvents(ctx, src, wish{follow: o.follow}, l.notice, l.event, below)
			if err != nil {
				return err
			}
			failed[i] = l.finish(src, end)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return letGo(ctx, err)
	}
	return errors.Join(failed...)
}

// sources finds the runs that words name, or those that the selector selects.
func (o *logsOptions) sources(ctx context.Context, words []string) (found []*source, err error) {
	if o.selector != "" {
		return o.selected(ctx)
	}
	if len(words) > mostLogs {
		return nil, tooMany(len(words))
	}
	for i, word := range words {
		if slices.Contains(words[:i], word) {
			continue
		}
		src, err := o.openWord(ctx, word)
		if err != nil {
			return found, err
		}
		found = append(found, src)
	}
	return found, nil
}

func (o *logsOptions) selected(ctx context.Context) (found []*source, err error) {
	if _, err := parseSelector(o.selector); err != nil {
		return nil, err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	all, _, err := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, Namespace: o.namespace, Labels: o.selector})
	switch {
	case err != nil:
		c.Close()
		return nil, err
	case len(all) == 0:
		c.Close()
		return nil, reason.Usagef("no run in namespace %s has the labels %s", c.Namespace(o.namespace), o.selector).WithHint("agentctl get runs --show-labels lists them; a run of the state folder has no labels: name it")
	case len(all) > mostLogs:
		c.Close()
		return nil, tooMany(len(all))
	}
	slices.SortFunc(all, func(a, b client.Object) int { return a.Created().Compare(b.Created()) })
	for _, x := range all {
		found = append(found, o.object(c, x.Name(), x))
	}
	return found, nil
}

func tooMany(n int) error {
	return reason.Usagef("%d runs are meant, and %d are shown at most", n, mostLogs).WithHint("select fewer, for example with -l app=reviewer,team=web")
}

// marksOf are the names that lines are behind: short ones where they differ.
func marksOf(found []*source) []string {
	short, seen := make([]string, len(found)), map[string]bool{}
	for i, src := range found {
		short[i] = src.place.Object
		if short[i] == "" {
			short[i] = display.ShortRun(src.name())
		}
		if seen[short[i]] {
			for j, src := range found {
				short[j] = src.name()
			}
			return short
		}
		seen[short[i]] = true
	}
	return short
}

// loggedRuns are several runs that are shown on one screen.
type loggedRuns struct {
	mu              sync.Mutex
	screen, notices *display.Screen
}

// loggedRun is one of them.
type loggedRun struct {
	*loggedRuns
	mark     string
	follow   bool
	tail     int
	finished *event.RunFinished
	// files is the folder of the run's files.
	files string
}

func (l *loggedRun) notice(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	display.Notice(l.notices, text)
}

func (l *loggedRun) lines(mark, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return display.MarkedLines(l.screen, mark, text)
}

func (l *loggedRun) event(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunStarted:
		l.files = d.Workspace.Dir
	case event.RunFinished:
		l.finished = &d
	case event.RunResumed:
		l.finished = nil
	case event.ToolResult:
		l.excess(e.Call, &d.ToolResult)
	case event.ToolError:
		l.excess(e.Call, &d.ToolResult)
	case event.TextEnd:
		if l.follow && d.Text != "" {
			return l.lines(l.mark, d.Text)
		}
	}
	return nil
}

// excess says, beside the texts, that a call exceeded its facts.
func (l *loggedRun) excess(call string, r *message.ToolResult) {
	if excess := r.Record.Excess(l.files); excess != "" {
		l.notice(l.mark + ": call " + call + " " + excess)
	}
}

// below shows what a subagent says, as logged does.
func (l *loggedRun) below(e event.Event) error {
	mark := l.mark + " › " + display.ShortRun(e.Run)
	switch d := e.Data.(type) {
	case event.TextEnd:
		if l.follow {
			return l.lines(mark, d.Text)
		}
	case event.RunFinished:
		if !l.follow && d.Output != "" {
			return l.lines(mark, d.Output)
		}
	}
	return nil
}

// finish shows the answer where nothing was followed, or says why there is none.
func (l *loggedRun) finish(src *source, end *client.RunEnd) error {
	f := l.finished
	switch {
	case f != nil && f.Phase == view.Succeeded && l.follow:
		return nil
	case f != nil && f.Phase == view.Succeeded:
		return l.lines(l.mark, lastLines(f.Output, l.tail))
	}
	return fmt.Errorf("run/%s has no answer: it is %s%s", src.name(), end.Phase, because(end.Reason, end.Message))
}
