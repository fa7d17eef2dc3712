package flags

import (
	"testing"
	"time"
)

func TestAgesAreDurationsDaysAndWeeks(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"12h": 12 * time.Hour, "30d": 30 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		if got, err := Age(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0d", "0s", "-1h", "-1d", "1.5d", "d", "30", "65535w", "65536w", "1y", "1d12h"} {
		if got, err := Age(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
