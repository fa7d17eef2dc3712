package floor

import (
	"io"
	"strings"
	"testing"
)

func TestRunSaysHowItIsUsed(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"-some", "x", "y"}} {
		if err := Run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%v: got %v", args, err)
		}
	}
	if err := Run(t.Context(), []string{"-many", "x", "y"}, io.Discard); err == nil {
		t.Error("x is no number")
	}
}
