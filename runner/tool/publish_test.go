package tool

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// publisher is a toolbox with an agent's publications; what its calls prepare is kept.
func publisher(t *testing.T) (*Registry, *[]message.Publication) {
	t.Helper()
	kept := &[]message.Publication{}
	r := registry(t, nil, shipped(t, "publish"))
	r.Items = Items{
		Declared: []v1alpha1.Publication{
			{Name: "review", Type: v1alpha1.PublishComment, Max: 1, MaxBytes: 100},
			{Name: "fix", Type: v1alpha1.PublishPullRequest, Max: 2, MaxBytes: 100},
			{Name: "notify", Type: v1alpha1.PublishWebhook, Max: 2, MaxBytes: 100},
		},
		Prepared: func() []message.Publication { return *kept },
	}
	return r, kept
}

func TestAnItemIsPreparedWithinItsCap(t *testing.T) {
	r, kept := publisher(t)
	for _, c := range []struct{ reason, args, refused string }{
		{"a comment", `{"name":"review","body":"fine"}`, ""},
		{"one too many", `{"name":"review","body":"again"}`, "at most 1 of review"},
		{"another one", `{"name":"fix","title":"Fix it","body":"because"}`, ""},
		{"the second of two", `{"name":"fix","title":"Fix it again","body":"because"}`, ""},
		{"the third of two", `{"name":"fix","title":"Fix","body":"because"}`, "at most 2 of fix"},
	} {
		got, err := called(t, r, "publish", c.args)
		if err != nil || got.Failed() != (c.refused != "") || (got.Publication == nil) != (c.refused != "") || !strings.Contains(got.Text, c.refused) {
			t.Errorf("%s: %+v, %v", c.reason, got, err)
			continue
		}
		if got.Publication != nil {
			*kept = append(*kept, *got.Publication)
		}
	}
	if fmt.Sprint(*kept) != "[{review Comment  fine []} {fix PullRequest Fix it because []} {fix PullRequest Fix it again because []}]" {
		t.Errorf("kept: %v", *kept)
	}
}

func TestAnItemThatIsNotDeclaredIsNotPrepared(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"unknown":       {`{"name":"merge","body":"x"}`, "declared are: review, fix, notify"},
		"secret":        {`{"name":"review","body":"it is hunter2"}`, "it holds a secret"},
		"secret data":   {`{"name":"notify","data":{"a":["hunter2"]}}`, "it holds a secret"},
		"too long":      {`{"name":"review","body":"` + strings.Repeat("x", 101) + `"}`, "101 bytes"},
		"title":         {`{"name":"review","title":"x","body":"x"}`, "neither title nor data"},
		"no title":      {`{"name":"fix","body":"x"}`, "a title and a body"},
		"blank":         {`{"name":"review","body":" \n"}`, "a Comment has a body"},
		"nothing":       {`{"name":"notify"}`, "a Webhook has data"},
		"marker":        {`{"name":"review","body":"<!-- AgentCTL:0123 -->"}`, "recognises"},
		"marker title":  {`{"name":"fix","title":"<!-- agentctl:0123 -->","body":"x"}`, "recognises"},
		"escape":        {`{"name":"review","body":"a\u001b[2Jb"}`, "control characters"},
		"direction":     {`{"name":"review","body":"a\u202eb"}`, "control characters"},
		"several lines": {`{"name":"fix","title":"a\nb","body":"x"}`, "several lines"},
	} {
		r, _ := publisher(t)
		got, err := called(t, r, "publish", c.args)
		if err != nil || got.Code != message.CodeTool || got.Publication != nil || !strings.Contains(got.Text, c.want) || strings.Contains(got.Text, "hunter2") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, args := range map[string]string{
		"no name": `{"body":"x"}`, "target": `{"name":"review","body":"x","url":"https://evil.example"}`, "data of text": `{"name":"notify","data":"x"}`,
	} {
		r, _ := publisher(t)
		if _, err := called(t, r, "publish", args); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	r := registry(t, nil, shipped(t, "publish"))
	if got, err := called(t, r, "publish", `{"name":"review","body":"x"}`); err != nil || !strings.Contains(got.Text, "declares no publications") {
		t.Errorf("without a declaration: %+v, %v", got, err)
	}
}
