package host

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Answer is what a tool answered in a call that completed.
type Answer struct {
	Tool     string
	Metadata json.RawMessage
}

const (
	// recallPiece is how much is sent at a time.
	recallPiece = 4 << 20
	// maxRecall bounds what is sent in all; the oldest answers are left out.
	maxRecall = 64 << 20
)

// Recall sends the earlier answers of its tools to a program that was started in the
// middle of a run, the oldest first. A program that does not implement recall is not an
// error.
func (p *Plugin) Recall(ctx context.Context, run, workspace string, answers []Answer) error {
	size, from := 0, len(answers)
	for from > 0 && size+len(answers[from-1].Metadata) <= maxRecall {
		from--
		size += len(answers[from].Metadata)
	}
	req := &toolpb.RecallRequest{Run: run, Workspace: workspace}
	size = 0
	for i, a := range answers[from:] {
		req.Answers = append(req.Answers, &toolpb.Answer{Tool: a.Tool, MetadataJson: a.Metadata})
		if size += len(a.Metadata); size < recallPiece && from+i+1 < len(answers) {
			continue
		}
		if _, err := p.client.Recall(ctx, req); status.Code(err) == codes.Unimplemented {
			return nil
		} else if err != nil {
			return p.callError("", err)
		}
		req.Answers, size = nil, 0
	}
	return nil
}
