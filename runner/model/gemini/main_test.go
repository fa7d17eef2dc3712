package gemini

import (
	"testing"

	"go.uber.org/goleak"
)

// Cancelled, stalled and broken streams must leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
