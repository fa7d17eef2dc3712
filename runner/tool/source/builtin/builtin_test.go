package builtin

import (
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

func TestDefineRefusesAnUnknownShippedTool(t *testing.T) {
	if _, err := (tool.Kinds{Kind()}).Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{Source: builtin.Source("nope")}}); err == nil {
		t.Error("an unknown shipped tool was defined")
	}
}
