package files

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestLongSearchesUseEveryProcessor(t *testing.T) {
	usual := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(usual)
	var w wide
	step := func(reason string, do func(), want int) {
		t.Helper()
		do()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%s: %d processors, want %d", reason, got, want)
		}
	}
	step("the first lifts the limit", w.enter, usual)
	step("another changes nothing", w.enter, usual)
	step("one still searches", w.leave, usual)
	step("the last restores the limit", w.leave, 1)
	step("again", w.enter, usual)
	step("again", w.leave, 1)
}

func TestASearchInManyFilesRestoresTheLimit(t *testing.T) {
	usual := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(usual)
	d := newDesk(t, nil)
	for i := range manyFiles + 10 {
		d.put(fmt.Sprintf("f%03d", i), "needle")
	}
	got := d.ok("grep", args{"pattern": "needle"})
	if !strings.Contains(got, "f000") {
		t.Errorf("found %q", got)
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d processors after the search, want 1", n)
	}
}
