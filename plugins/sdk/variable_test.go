package sdk

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestVariablesComeWithACallAndGoWithItsResult(t *testing.T) {
	t.Setenv("OF_THE_PROGRAM", "x")
	req := &toolpb.CallRequest{Variables: []*toolpb.Variable{{Name: "API_TOKEN", Value: "tok-4711-0815-canary"}}}
	r, err := serve(t, req, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
		if call.Getenv("API_TOKEN") != "tok-4711-0815-canary" || call.Getenv("OF_THE_PROGRAM") != "x" || call.Getenv("NONE") != "" {
			t.Errorf("the call reads %q, %q, %q", call.Getenv("API_TOKEN"), call.Getenv("OF_THE_PROGRAM"), call.Getenv("NONE"))
		}
		if os.Getenv("API_TOKEN") != "" || !slices.Contains(call.Environ(), "API_TOKEN=tok-4711-0815-canary") || !slices.Contains(call.Environ(), "OF_THE_PROGRAM=x") {
			t.Error("the variable is in the environment of the program, or not in that of what it starts")
		}
		if text := fmt.Sprintf("%v %+v %#v", call.Variables, call.Variables, call.Variables); strings.Contains(text, "canary") {
			t.Errorf("a log shows the value: %s", text)
		}
		all := []Variable{{Name: "SESSION", Value: "s-1"}}
		for range 2 * toolpb.MaxVariables {
			all = append(all, Variable{Name: "N"})
		}
		return &Result{Variables: all}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := r.events[len(r.events)-1].GetResult().GetVariables()
	if len(sent) != toolpb.MaxVariables+1 || sent[0].GetName() != "SESSION" || sent[0].GetValue() != "s-1" {
		t.Errorf("%d variables were sent, the first is %v", len(sent), sent[0])
	}
}
