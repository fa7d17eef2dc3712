package display

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// mostBelow is how many runs below the status shows at once.
const mostBelow = 8

// work is a call that runs, and since when.
type work struct {
	call  string
	since time.Time
}

// long reports whether the call has run for so long that its time is worth showing.
func (w work) long() bool { return time.Since(w.since) >= statusEvery }

// since is when an event happened: a reader that attached later has not seen it happen. A
// replay, and a clock that is far off, count from now.
func (t *textRun) since(e event.Event) time.Time {
	now := time.Now()
	if ago := now.Sub(e.Time); !t.o.Replay && ago > 0 && ago < 24*time.Hour {
		return now.Add(-ago)
	}
	return now
}

// draw shows what is running, on lines that the next output takes back: the call or the
// request, and below it the runs that it has started.
func (t *textRun) draw() {
	if !t.stderr.Live || t.asking > 0 || t.stream.midLine {
		return
	}
	text, long := "", false
	switch {
	case len(t.running) == 1:
		w := t.running[0]
		c := t.run.Call(w.call)
		if text = "  " + Line(c.Tool) + " running"; w.long() {
			text, long = text+" "+whole(time.Since(w.since)), true
		}
		if about := title(c); about != "" {
			text += "  " + about
		}
	case len(t.running) > 1:
		text, long = fmt.Sprintf("  %d calls running", len(t.running)), t.running[0].long()
	case t.wait.long():
		text, long = "  "+t.waitText(), true
	default:
		return
	}
	t.clear()
	width := t.stderr.width() - 1
	if long {
		text = beside(text, t.figures(), width)
	}
	lines := []string{fit(text, width)}
	if !t.o.Chat { // which takes back one line
		lines = append(lines, t.tree(width)...)
	}
	t.stderr.print(t.stderr.paint(dim, strings.Join(lines, "\n")))
	t.drawn = len(lines)
}

// clear takes the status back.
func (t *textRun) clear() {
	switch {
	case t.drawn == 1:
		t.stderr.print("\r\x1b[K")
	case t.drawn > 1:
		t.stderr.print(fmt.Sprintf("\r\x1b[%dA\x1b[J", t.drawn-1))
	}
	t.drawn = 0
}

// begins and ends keep the calls that run, in the order they began. While there is one
// the status of a terminal is drawn each second.
func (t *textRun) begins(e event.Event) {
	t.running = append(t.running, work{e.Call, t.since(e)})
	if t.ticks == nil && t.stderr.Live {
		t.ticks = time.AfterFunc(statusEvery, t.tick)
	}
}

func (t *textRun) ends(call string) {
	t.running = slices.DeleteFunc(t.running, func(w work) bool { return w.call == call })
	if len(t.running) == 0 {
		t.stopTicks()
	}
}

func (t *textRun) stopTicks() {
	if t.ticks != nil {
		t.ticks.Stop()
		t.ticks = nil
	}
}

// tick is the call of the timer.
func (t *textRun) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ticks == nil {
		return
	}
	t.draw()
	t.ticks = time.AfterFunc(statusEvery, t.tick)
}

// figures are what the turn has used, each before its limit: steps, tokens and cost, those
// of the runs below that still work included, and time.
func (t *textRun) figures() string {
	turn := t.run.Turn()
	if turn == nil {
		return ""
	}
	u := used{turn.Tokens.Add(turn.Estimated), turn.Cost, turn.Unpriced, turn.Uncounted}
	for _, c := range t.children {
		u.add(&c.run)
	}
	l := t.run.Started.Limits
	if l == nil {
		l = &event.Limits{}
	}
	var parts []string
	if n := t.run.TurnSteps(); n > 0 {
		step := "step " + count(int64(n))
		if l.MaxSteps > 0 {
			step += "/" + count(int64(l.MaxSteps))
		}
		parts = append(parts, step)
	}
	if n := u.tokens.Total(); n > 0 || l.MaxTokens > 0 {
		tokens := plural(n, "token")
		if l.MaxTokens > 0 {
			tokens = count(n) + "/" + plural(l.MaxTokens, "token")
		}
		if u.uncounted {
			tokens = "about " + tokens
		}
		parts = append(parts, tokens)
	}
	switch {
	case u.unpriced || u.uncounted:
		parts = append(parts, cost(nil))
	case l.MaxCost > 0:
		parts = append(parts, cost(&u.cost)+"/"+cost(&l.MaxCost))
	case u.cost > 0:
		parts = append(parts, cost(&u.cost))
	}
	if t.o.Replay { // its times are those of the recording
		return strings.Join(parts, " · ")
	}
	worked := whole(t.run.TurnWorked(time.Now()))
	if l.TimeoutMs > 0 {
		worked += "/" + whole(time.Duration(l.TimeoutMs)*time.Millisecond)
	}
	return strings.Join(append(parts, worked), " · ")
}

// used is what runs have used.
type used struct {
	tokens message.Usage
	cost   message.Cost
	// unpriced: the cost is not known, uncounted: nor are the tokens.
	unpriced, uncounted bool
}

func (u *used) add(r *view.Run) {
	u.tokens = u.tokens.Add(r.Tokens).Add(r.Estimated)
	u.cost = u.cost.Add(r.Cost)
	u.unpriced, u.uncounted = u.unpriced || r.Unpriced, u.uncounted || r.Uncounted
}

// whole is a length of time in whole seconds: 3s, 2m03s, 1h00m00s.
func whole(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm%02ds", s/3600, s/60%60, s%60)
}

// leastAbout is what is left of a text on a line that has not room for it and its figures.
const leastAbout = 24

// beside puts figures behind a text, which is cut for them.
func beside(text, figures string, width int) string {
	if figures == "" {
		return text
	}
	const between = " · "
	if width <= 0 {
		return text + between + figures
	}
	room := max(width-ansi.StringWidth(between+figures), leastAbout)
	return cut(text, room) + between + figures
}

// tree draws the runs below that work, each below the one that has started it.
func (t *textRun) tree(width int) []string {
	below := map[string][]*child{}
	for _, c := range t.children {
		above := t.run.ID
		if p := c.run.Started.Parent; p != nil && t.children[p.Run] != nil {
			above = p.Run
		}
		below[above] = append(below[above], c)
	}
	var lines []string
	var add func(above, indent string)
	add = func(above, indent string) {
		list := below[above]
		slices.SortFunc(list, func(a, b *child) int {
			if n := a.run.StartTime.Compare(b.run.StartTime); n != 0 {
				return n
			}
			return strings.Compare(a.run.ID, b.run.ID)
		})
		for i, c := range list {
			branch, inner := "├ ", "│ "
			if i == len(list)-1 {
				branch, inner = "└ ", "  "
			}
			lines = append(lines, fit(indent+branch+c.status(), width))
			add(c.run.ID, indent+inner)
		}
	}
	add(t.run.ID, "  ")
	if more := len(lines) - mostBelow; more > 0 {
		lines = append(lines[:mostBelow], "  and "+plural(int64(more), "run")+" more")
	}
	return lines
}

// status is what a run below is doing.
func (c *child) status() string {
	parts := []string{ShortRun(c.run.ID)}
	if c.run.Steps > 0 {
		parts = append(parts, "step "+count(int64(c.run.Steps)))
	}
	if n := c.run.Tokens.Total(); n > 0 {
		parts = append(parts, plural(n, "token"))
	}
	doing := "model " + Line(c.run.Started.Model.Name)
	switch {
	case len(c.asking) > 0:
		doing = "asks"
	case len(c.running) == 1:
		call := c.run.Call(c.running[0])
		doing = Line(call.Tool) + " running  " + title(call)
	case len(c.running) > 1:
		doing = fmt.Sprintf("%d calls running", len(c.running))
	}
	return strings.Join(append(parts, doing), " · ")
}
