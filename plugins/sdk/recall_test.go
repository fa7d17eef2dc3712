package sdk

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestEachToolIsToldItsOwnPast(t *testing.T) {
	var told []string
	remember := func(name string) Option {
		return OnRecall(func(p Past) {
			if string(p.Metadata) == "bad" {
				panic("a bad memory")
			}
			told = append(told, name+" "+p.Run+" "+p.Workspace+" "+string(p.Metadata))
		})
	}
	s, err := newServer([]Tool{New("a", "A.", greet, remember("a")), New("b", "B.", greet, remember("b")), New("c", "C.", greet)})
	if err != nil {
		t.Fatal(err)
	}
	req := &toolpb.RecallRequest{Run: "r", Workspace: "/w"}
	for _, a := range [][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"none", "4"}, {"a", "bad"}, {"a", "5"}} {
		req.Answers = append(req.Answers, &toolpb.Answer{Tool: a[0], MetadataJson: []byte(a[1])})
	}
	if _, err := s.Recall(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a r /w 1", "b r /w 2", "a r /w 5"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Recall(ctx, req); status.Code(err) != codes.Canceled || len(told) != 3 {
		t.Errorf("a caller that has gone: %v, %d answers told", err, len(told))
	}
}
