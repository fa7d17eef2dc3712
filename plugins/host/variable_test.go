package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestAVariableIsPrintedWithoutItsValue(t *testing.T) {
	v := Variable{Name: "API_TOKEN", Value: "tok-4711-0815-canary"}
	b, err := json.Marshal(CallResult{Variables: []Variable{v}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(b), fmt.Sprintf("%v %+v %#v %s", v, v, v, v), fmt.Sprintf("%+v", CallRequest{Variables: []Variable{v}}), fmt.Sprintf("%#v", &CallResult{Variables: []Variable{v}})} {
		if strings.Contains(text, "canary") || !strings.Contains(text, "API_TOKEN") {
			t.Error(text)
		}
	}
}

func TestAFloodOfVariablesIsCutWhereTheCallerSeesIt(t *testing.T) {
	many := make([]*toolpb.Variable, 100_000)
	for i := range many {
		many[i] = &toolpb.Variable{Name: "A"}
	}
	if got := variables(many); len(got) != MaxVariables+1 {
		t.Errorf("%d variables are kept", len(got))
	}
	if got := variables([]*toolpb.Variable{nil}); len(got) != 1 || got[0].Name != "" {
		t.Errorf("a variable that is none: %v", got)
	}
}
