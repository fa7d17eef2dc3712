package runs

import (
	"errors"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

func TestWhatARunChangedIsToldAtItsEnd(t *testing.T) {
	k := begun(t, t.TempDir(), "worker-1")
	changed := func() (diff, apply error) {
		_, diff = Diff(t.Context(), k.state, k.id)
		_, apply = Apply(t.Context(), ApplyOptions{State: k.state, Ref: k.id, By: "jane@test"})
		return diff, apply
	}
	diff, apply := changed()
	for _, err := range []error{diff, apply} {
		wrong, ok := errors.AsType[*reason.UsageError](err)
		if !ok || !strings.Contains(wrong.Error(), "has not finished") || !strings.Contains(wrong.Hint, "agentctl resume run/"+k.id) {
			t.Errorf("while it continues: %v", err)
		}
	}
	k.end(view.Succeeded, "Completed", 0)
	diff, apply = changed()
	if _, ok := errors.AsType[*reason.UsageError](apply); diff != nil || !ok || !strings.Contains(apply.Error(), "empty workspace") {
		t.Errorf("a run without files: diff %v, apply %v", diff, apply)
	}
	if c, err := Diff(t.Context(), k.state, journal.Latest); err != nil || c.Run != k.id || c.Files == nil || len(c.Files) > 0 {
		t.Errorf("it changed nothing: %+v, %v", c, err)
	}
}
