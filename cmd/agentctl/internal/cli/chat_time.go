package cli

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
)

// undo takes the newest turn back that has not been taken back yet.
func (c *chat) undo(ctx context.Context, _ string) (quit bool) {
	n := 0
	if c.run != nil {
		n = standingTurn(c.run)
	}
	if n == 0 {
		return c.tell("there is no turn to take back")
	}
	c.own(ctx, []string{"revert", "run/" + c.run.ID, "--to", fmt.Sprintf("turn/%d", n)})
	c.look(ctx)
	return false
}

// redo undoes the newest undo.
func (c *chat) redo(ctx context.Context, _ string) (quit bool) {
	if c.run == nil {
		return c.tell("nothing was taken back")
	}
	c.own(ctx, []string{"revert", "run/" + c.run.ID, "--undo"})
	c.look(ctx)
	return false
}

// fork has the next prompt begin a new run.
func (c *chat) fork(ctx context.Context, place string) (quit bool) {
	if c.run == nil {
		return c.tell("nothing has been done yet")
	}
	if err := (runs.Place{State: c.base.State, Ref: c.run.ID, At: place}).Check(ctx); err != nil {
		_ = c.app.report(c.cmd, err) // it shows the error; the chat has no exit code of it
		return false
	}
	c.place = &place
	from := place
	if from == "" {
		from = "the end"
	}
	return c.tell("the next prompt begins a new run from " + display.Line(from) + "; run/" + c.run.ID + " stays as it is")
}

func (c *chat) tell(text string) (quit bool) {
	_ = display.Text(c.app.stderr(), text) // a terminal that is gone ends the chat
	return false
}

// look reads the run again after it was changed.
func (c *chat) look(ctx context.Context) {
	if run, err := runs.View(ctx, c.base.State, c.run.ID); err == nil { // else the command has said what is wrong
		c.run = run
	}
}

// standingTurn is the number of the newest turn that was not taken back; 0 is none.
func standingTurn(r *view.Run) int {
	for _, turn := range slices.Backward(r.Turns) {
		for _, m := range r.Messages {
			if m.ID == turn.Message && m.Error != message.Reverted {
				return turn.Number
			}
		}
	}
	return 0
}
