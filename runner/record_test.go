package runner

import (
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// A run that has to know what its calls execute asks for that, also where nothing binds
// them; another run does not.
func TestWhatCallsExecuteIsRecordedWhereTheRunNeedsIt(t *testing.T) {
	const steps = `- calls: [{tool: bash, args: {command: "cat a.go; sh -c 'true; head -1 a.go'"}}]
- calls: [{tool: workspace_shell, args: {command: cat, args: [a.go]}}]
- calls: [{tool: read, args: {path: a.go}}]
- say: done
`
	for _, needed := range []bool{true, false} {
		p := newPlace(t, agent("tools: [{name: bash}, {name: workspace_shell}, {name: read}]", steps), map[string]string{"a.go": "package a\n"})
		out := p.run(t, func(o *RunOptions) { o.recordPrograms, o.Approve = needed, "all" })
		want(t, out, reason.Completed)
		var calls []*message.ToolPart
		for _, m := range out.Run.Messages {
			calls = append(calls, m.Calls()...)
		}
		if len(calls) != 3 {
			t.Fatalf("%d calls", len(calls))
		}
		for i, programs := range [][]string{{"/usr/bin/cat", "sh", "/usr/bin/head"}, {"/usr/bin/cat"}, nil} {
			record := calls[i].Result.Record
			if (record != nil) != (needed && programs != nil) {
				t.Errorf("needed: %v, call %d: record %+v", needed, i, record)
			}
			if record == nil {
				continue
			}
			if len(record.Changes)+len(record.Connections)+len(record.Exceeded) > 0 {
				t.Errorf("call %d: more than programs: %+v", i, record)
			}
			for _, name := range programs {
				if !slices.ContainsFunc(record.Programs, func(e message.Execution) bool { return e.Path == name || len(e.Argv) > 0 && e.Argv[0] == name }) {
					t.Errorf("call %d: %s is not among %+v", i, name, record.Programs)
				}
			}
		}
	}
}
