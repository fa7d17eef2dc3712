package builtin

import (
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestManifestOnlyRaisesAShippedTool(t *testing.T) {
	bash := v1alpha1.ToolSource{Builtin: &v1alpha1.BuiltinSource{Name: "bash"}}
	low := v1alpha1.ToolSpec{Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectNetwork}, Source: bash}
	Complete(&low)
	if low.Risk != v1alpha1.RiskR2 || len(low.Effects) != 4 || low.WorkspaceAccess != v1alpha1.AccessReadWrite || low.Description == "" || low.Parameters == nil {
		t.Errorf("got %+v", low)
	}
	high := v1alpha1.ToolSpec{Risk: v1alpha1.RiskR3, Description: "own", Source: bash}
	Complete(&high)
	if high.Risk != v1alpha1.RiskR3 || high.Description != "own" {
		t.Errorf("a raised tool became %+v", high)
	}
}

func TestAnUnknownProgramGetsTheStrictDefaults(t *testing.T) {
	for name, source := range map[string]v1alpha1.ToolSource{
		"exec":    {Exec: &v1alpha1.ExecSource{Command: []string{"x"}}},
		"unknown": {Builtin: &v1alpha1.BuiltinSource{Name: "nope"}},
	} {
		s := v1alpha1.ToolSpec{Source: source}
		Complete(&s)
		if s.Risk != v1alpha1.RiskR2 || s.Retry != v1alpha1.RetryNever || s.WorkspaceAccess != v1alpha1.AccessReadOnly || len(s.Effects) != 0 || s.Parameters != nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}
