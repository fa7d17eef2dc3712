package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

func TestSummariesTellHowRunsStand(t *testing.T) {
	p := asking(t, "Wait", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", nil)
	asked := make(chan struct{})
	outcome := make(chan *Outcome, 1)
	go func() {
		out, err := Run(context.WithoutCancel(t.Context()), p.options(func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, is := e.Data.(event.ApprovalRequested); is {
					close(asked)
				}
			}
		}))
		if err != nil {
			t.Error(err)
		}
		outcome <- out
	}()
	<-asked
	one := func(state string) RunSummary {
		t.Helper()
		all, err := Summaries(t.Context(), state)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v", all, err)
		}
		alone, err := Summary(t.Context(), state, all[0].Name)
		if err != nil || alone.Phase != all[0].Phase || alone.Name != all[0].Name {
			t.Errorf("by its name: %+v, %v", alone, err)
		}
		return all[0]
	}
	if s := one(p.state); s.Phase != view.Running || len(s.Waiting) != 1 || s.Steps != 1 || s.ExitCode != nil || s.EndTime != nil || s.Agent != "worker" || s.Model != "script" {
		t.Errorf("while it waits: %+v", s)
	}
	// What its process left, had it been killed now: nobody holds the copy.
	killed := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(killed, os.DirFS(p.state)); err != nil {
		t.Fatal(err)
	}
	if s := one(killed); s.Phase != RunInterrupted || len(s.Waiting) != 1 || s.ExitCode != nil {
		t.Errorf("killed: %+v", s)
	}
	p.answer(t, "@latest", nil)
	out := <-outcome
	s := one(p.state)
	if s.Phase != view.Succeeded || s.Reason != "Completed" || s.ExitCode == nil || *s.ExitCode != 0 || s.Steps != out.Run.Steps || len(s.Waiting) != 0 || s.Cost == nil || !s.EndTime.Equal(out.Run.EndTime) {
		t.Errorf("ended: %+v", s)
	}
}

func TestSummariesOfAnUnreadableRun(t *testing.T) {
	p := asking(t, "Deny", "- say: done\n", nil)
	out := p.run(t)
	files, err := filepath.Glob(filepath.Join(out.Journal, "events-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	write(t, files[0], `{"seq":1,"type":"text.delta"}`+"\n")
	all, err := Summaries(t.Context(), p.state)
	if err != nil || len(all) != 1 || all[0].Phase != RunUnreadable || all[0].Message == "" {
		t.Errorf("got %+v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Summaries(ctx, p.state); err == nil {
		t.Error("nobody waits for the list any more")
	}
	if _, err := Summary(t.Context(), p.state, "nobody"); err == nil {
		t.Error("there is no such run")
	}
}
