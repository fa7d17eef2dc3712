package display

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

func TestCommandsThatFollowLeadBackToTheRun(t *testing.T) {
	suspended := &view.Run{
		ID: "a-1-uid", PendingApprovals: []string{"call_1"},
		Finished: &event.RunFinished{Phase: view.Suspended, Reason: "ApprovalRequired", ExitCode: 3},
		Changes:  event.WorkspacePatch{Files: []event.FileChange{{Path: "x", Change: "added"}}},
	}
	for name, c := range map[string]struct {
		reason     string
		place      Place
		want, lack []string
	}{
		"here": {
			"a run of the state folder goes on by a resume",
			Place{State: "my state"},
			[]string{"journal  /j\n", "agentctl approve a-1-uid/call_1 --state 'my state'\n", "agentctl resume run/a-1-uid --state 'my state'\n", "agentctl diff run/a-1-uid --state"},
			[]string{"attach"},
		},
		"object here": {
			"a run of the control plane of this machine has its files here",
			Place{Object: "a-1", Namespace: "web"},
			[]string{"journal  /j\n", "agentctl approve run/a-1/call_1 -n web\n", "agentctl attach run/a-1 -n web\n", "agentctl diff run/a-1-uid\n"},
			[]string{"resume"},
		},
		"object away": {
			"the files of another machine cannot be looked at",
			Place{Object: "a-1", Namespace: "web", Context: "far away", Away: true},
			[]string{"agentctl approve run/a-1/call_1 -n web --context 'far away'\n", "agentctl attach run/a-1 -n web --context 'far away'\n"},
			[]string{"journal", "agentctl diff", "resume"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := footer(&Screen{}, suspended, "/j", c.place)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: it lacks %q:\n%s", c.reason, want, text)
				}
			}
			for _, lack := range c.lack {
				if strings.Contains(text, lack) {
					t.Errorf("%s: it holds %q:\n%s", c.reason, lack, text)
				}
			}
		})
	}
}
