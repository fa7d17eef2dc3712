package sdk

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestARecordIsAskedForAndSent(t *testing.T) {
	for _, asked := range []bool{true, false} {
		r, err := serve(t, &toolpb.CallRequest{RecordPrograms: asked}, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
			if call.RecordPrograms != asked {
				t.Errorf("asked for: %v, want %v", call.RecordPrograms, asked)
			}
			if !asked {
				return &Result{}, nil
			}
			return &Result{Record: &Record{
				Programs:    []Program{{Path: "/usr/bin/go", Argv: []string{"go", "te\xffst"}}},
				Changes:     []Change{{Op: RecordRename, Path: "/w/a", To: "/w/\xfe"}},
				Connections: []string{"127.0.0.1:80"},
				Exceeded:    []Excess{{Op: RecordExecute, Program: "/usr/bin/id"}, {Op: RecordConnect, Address: "[::1]:1"}, {Op: RecordLink, Path: "/w/b", To: "/w/c"}},
				Omitted:     7,
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var want *toolpb.Record
		if asked {
			want = &toolpb.Record{
				Programs:    []*toolpb.Program{{Path: "/usr/bin/go", Argv: []string{"go", "te\uFFFDst"}}},
				Changes:     []*toolpb.Change{{Op: "rename", Path: "/w/a", To: "/w/\uFFFD"}},
				Connections: []string{"127.0.0.1:80"},
				Exceeded:    []*toolpb.Excess{{Op: "execute", Program: "/usr/bin/id"}, {Op: "connect", Address: "[::1]:1"}, {Op: "link", Path: "/w/b", To: "/w/c"}},
				Omitted:     7,
			}
		}
		if diff := cmp.Diff(want, r.events[len(r.events)-1].GetResult().GetRecord(), protocmp.Transform()); diff != "" {
			t.Errorf("asked for: %v; the record (want, got): %s", asked, diff)
		}
	}
}
