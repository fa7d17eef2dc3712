package host

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestProgressHasABoundAndTheLastStateIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown []string
		size := 0
		l := newThrottle(func(s string) { shown, size = append(shown, s), size+len(s)+progressCost })
		text := strings.Repeat("x", toolpb.MaxProgress-1)
		for range 100_000 {
			l.show(text + "a")
		}
		if size > progressBurst {
			t.Errorf("%d bytes were shown at once, want at most %d", size, progressBurst)
		}
		burst := len(shown)
		l.show(text + "b")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(shown) - burst; got != 1 || !strings.HasSuffix(shown[len(shown)-1], "b") {
			t.Errorf("%d more were shown when there was room, want the newest one", got)
		}
		for range 10 {
			l.show("small")
		}
		for range 100_000 {
			l.show(text + "c")
		}
		l.show("the end")
		l.close()
		last := shown[len(shown)-1]
		if !strings.HasPrefix(last, "the end\n(") || !strings.HasSuffix(last, " progress updates were not shown)") {
			t.Errorf("last is %q", last)
		}
		for _, s := range shown {
			if len(s) > toolpb.MaxProgress {
				t.Errorf("%d bytes in one event", len(s))
			}
		}
		if len(shown) > 300 {
			t.Errorf("%d events", len(shown))
		}
		before := len(shown)
		l.show("late")
		time.Sleep(time.Hour)
		if len(shown) != before {
			t.Error("something was shown after the end")
		}
	})
}

func TestOrdinaryProgressIsShownWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := newThrottle(func(string) { n++ })
		for range 50 {
			l.show("compiling")
			time.Sleep(100 * time.Millisecond)
		}
		l.close()
		if n != 50 {
			t.Errorf("%d of 50 were shown", n)
		}
	})
}
