package execution

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// fold is a run with running calls, and what it has used.
type fold struct {
	mu sync.Mutex
	v  view.Run
}

func (f *fold) see(read func(*view.Run)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read(&f.v)
}

func (f *fold) use(tokens int64, cost message.Cost) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.v.Turn().Tokens.Input += tokens
	f.v.Turn().Cost += cost
}

// running is a run with so many calls that run.
func running(t *testing.T, calls int) *fold {
	t.Helper()
	f := &fold{}
	apply := func(e event.Event) {
		if err := f.v.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	apply(event.Event{Seq: 1, Run: "r", Message: "m1", Part: "p1", Data: event.RunStarted{Agent: "a"}})
	apply(event.Event{Message: "m2", Part: "p2", Data: event.ModelRequest{Step: 1}})
	for i := range calls {
		apply(event.Event{Message: "m2", Part: fmt.Sprint("c", i), Call: fmt.Sprint(i), Data: event.ToolInputStart{Tool: "task"}})
		apply(event.Event{Message: "m2", Call: fmt.Sprint(i), Data: event.ToolInputEnd{Tool: "task", Input: []byte("{}")}})
	}
	apply(event.Event{Message: "m2", Data: event.ModelResponse{}})
	for i := range calls {
		apply(event.Event{Message: "m2", Call: fmt.Sprint(i), Data: event.ToolCall{Tool: "task", Args: []byte("{}")}})
	}
	return f
}

// Many subagents that ask at the same moment together stay within what is left above.
func TestSubagentsShareOneBudget(t *testing.T) {
	top := running(t, 8)
	budget := NewBudget(1000, 0, top.see)
	var mu sync.Mutex
	var granted int
	var wg sync.WaitGroup
	for i := range 8 {
		child := budget.Child(fmt.Sprint(i), 0, 0, (&fold{}).see)
		wg.Go(func() {
			if child.Reserve(300, nil) == "" {
				mu.Lock()
				granted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if granted != 3 {
		t.Errorf("%d requests of 300 tokens were let through, 1000 are left", granted)
	}
}

func TestWhatASubagentUsesIsUsedAbove(t *testing.T) {
	top, middle, leaf := running(t, 1), running(t, 2), running(t, 0)
	a := NewBudget(1000, 500, top.see)
	b := a.Child("0", 0, 0, middle.see)
	c, d := b.Child("0", 0, 0, leaf.see), b.Child("1", 0, 0, (&fold{}).see)
	price := message.Cost(100)
	if why := c.Reserve(900, &price); why != "" {
		t.Fatal(why)
	}
	if why := d.Reserve(200, &price); !strings.Contains(why, "limits.maxTokens of a run above is 1000; 100 tokens are left") {
		t.Errorf("the room of a request in flight is given away: %q", why)
	}
	leaf.use(400, 100)
	c.Settle()
	if why := d.Reserve(600, &price); why != "" {
		t.Errorf("what was not used is not given back: %s", why)
	}
	if why := d.Reserve(601, &price); why == "" {
		t.Error("600 are left")
	}
	if dear := message.Cost(401); d.Reserve(1, &dear) == "" {
		t.Error("the cost of two levels below counts")
	}
	if why := d.Reserve(1, nil); !strings.Contains(why, "price of the model is unknown") {
		t.Errorf("an unknown price fits in a budget of money: %q", why)
	}
	if why := c.Reserve(-1, &price); why == "" {
		t.Error("a count that overflows fits")
	}
	// The call has ended: what it has used is in the run of the call, once.
	if err := middle.v.Apply(event.Event{Message: "m2", Call: "0", Data: event.ToolResult{ToolResult: message.ToolResult{
		Child: &message.ChildRun{Run: "x", Tokens: message.Usage{Input: 400}, Cost: &price},
	}}}); err != nil {
		t.Fatal(err)
	}
	if why := d.Reserve(600, &price); why != "" {
		t.Errorf("it is counted twice: %s", why)
	}
}
