package reason

import (
	"errors"
	"fmt"
	"testing"
)

// The codes are frozen: scripts and CI jobs branch on them.
func TestExitCodesAreFrozen(t *testing.T) {
	want := map[Reason]int{
		Completed: 0, ModelError: 1, ToolError: 1, NoFinalAnswer: 1, OutputTruncated: 1, ContentFiltered: 1, Cancelled: 1, Internal: 1,
		Denied: 3, ApprovalRequired: 3, CredentialMissing: 4, CredentialRejected: 4,
		MaxSteps: 5, LoopDetected: 5, BudgetExceeded: 5, DeadlineExceeded: 5, ContextExhausted: 5,
		OutputInvalid: 6, EvidenceMissing: 6, ReplayDiverged: 7, ProviderUnavailable: 8, IsolationUnavailable: 8, WorkspaceUnavailable: 8,
		ReferenceNotFound: 2, PathNotAbsolute: 2, SpecInvalid: 2, PolicyInvalid: 2, LockDrift: 2, // of a run that cannot begin
	}
	seen := map[Reason]bool{}
	for _, i := range All() {
		if seen[i.Reason] {
			t.Errorf("%s stands twice in the list", i.Reason)
		}
		seen[i.Reason] = true
		if i.Meaning == "" {
			t.Errorf("%s has no meaning", i.Reason)
		}
		code, run := want[i.Reason]
		if run && i.ExitCode != code {
			t.Errorf("%s exits with %d, want %d", i.Reason, i.ExitCode, code)
		}
		if !run && i.ExitCode != -1 {
			t.Errorf("%s is a reason of objects but has exit code %d", i.Reason, i.ExitCode)
		}
		delete(want, i.Reason)
	}
	if len(want) > 0 {
		t.Errorf("missing in the list: %v", want)
	}
}

func TestUnknownWordCountsAsInternal(t *testing.T) {
	for _, r := range []Reason{"", "Whatever", Accepted} {
		if got := r.ExitCode(); got != ExitFailed {
			t.Errorf("%q exits with %d, want %d", r, got, ExitFailed)
		}
	}
}

func TestErrorKeepsReasonThroughWrapping(t *testing.T) {
	cause := errors.New("refused")
	err := fmt.Errorf("agent %q: %w", "a", New(ProviderUnavailable, "dial: %w", cause).WithHint("start %s", "it"))
	if got := Of(err); got != ProviderUnavailable {
		t.Errorf("reason %q, want %q", got, ProviderUnavailable)
	}
	if got := Hint(err); got != "start it" {
		t.Errorf("hint %q", got)
	}
	if !errors.Is(err, cause) || err.Error() != `agent "a": dial: refused` {
		t.Errorf("the cause or the text is lost: %v", err)
	}
	if Of(cause) != Internal || Hint(cause) != "" {
		t.Error("an error without a reason is Internal and has no hint")
	}
}
