package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestARecordIsTakenAsItIsSent(t *testing.T) {
	sent := &toolpb.Record{
		Programs:    []*toolpb.Program{{Path: "/usr/bin/go", Argv: []string{"go", "test"}}},
		Changes:     []*toolpb.Change{{Op: "rename", Path: "/w/a", To: "/w/b"}},
		Connections: []string{"127.0.0.1:80"},
		Exceeded:    []*toolpb.Excess{{Op: "write", Path: "/w/c"}, {Op: "execute", Program: "/usr/bin/id"}, {Op: "connect", Address: "127.0.0.1:1"}},
		Omitted:     3,
	}
	want := &Record{
		Programs: []Execution{{Path: "/usr/bin/go", Argv: []string{"go", "test"}}}, Changes: []RecordedChange{{"rename", "/w/a", "/w/b"}}, Connections: []string{"127.0.0.1:80"},
		Exceeded: []Excess{{Op: "write", Path: "/w/c"}, {Op: "execute", Program: "/usr/bin/id"}, {Op: "connect", Address: "127.0.0.1:1"}}, Omitted: 3,
	}
	if diff := cmp.Diff(want, record(sent)); diff != "" {
		t.Errorf("want, got: %s", diff)
	}
	if got := record(nil); got != nil {
		t.Errorf("of a program that sends none: %+v", got)
	}
	if got := record(&toolpb.Record{}); got == nil {
		t.Error("an empty record is not none: nothing was done")
	}
}

// A program may send what it wants: what is kept of it is bounded, and the rest is counted.
func TestARecordIsBounded(t *testing.T) {
	sent := &toolpb.Record{Omitted: -5}
	for i := range 2000 {
		name := fmt.Sprintf("/w/%d", i)
		sent.Programs = append(sent.Programs, &toolpb.Program{Path: name, Argv: make([]string, 2000)})
		sent.Changes = append(sent.Changes, &toolpb.Change{Op: "write", Path: name})
		sent.Connections = append(sent.Connections, name)
		sent.Exceeded = append(sent.Exceeded, &toolpb.Excess{Op: "write", Path: name})
	}
	got := record(sent)
	if len(got.Programs) != maxPrograms || len(got.Changes) != maxChanges || len(got.Connections) != maxConnections || len(got.Exceeded) != maxExceeded {
		t.Errorf("%d programs, %d changes, %d connections, %d excesses", len(got.Programs), len(got.Changes), len(got.Connections), len(got.Exceeded))
	}
	if len(got.Programs[0].Argv) != maxArgv {
		t.Errorf("%d arguments", len(got.Programs[0].Argv))
	}
	if want := 4*2000 - maxPrograms - maxChanges - maxConnections - maxExceeded + maxPrograms; got.Omitted != want {
		t.Errorf("%d omitted, want %d: with the arguments that are cut", got.Omitted, want)
	}
	long := strings.Repeat("x", maxRecordText/2+1)
	got = record(&toolpb.Record{
		Changes:  []*toolpb.Change{{Op: "write", Path: long}},
		Exceeded: []*toolpb.Excess{{Op: "write", Path: long}},
	})
	if len(got.Exceeded) != 1 || len(got.Changes) != 0 || got.Omitted != 1 {
		t.Errorf("what was denied must have its place: %d excesses, %d changes, %d omitted", len(got.Exceeded), len(got.Changes), got.Omitted)
	}
}
