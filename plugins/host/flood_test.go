package host_test

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/host"
)

// taken is the memory that this process occupies.
func taken() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased) //nolint:gosec // far below the bound
}

func TestAFloodOfOutputDoesNotFillTheHost(t *testing.T) {
	p := start(t, exe(t), "serve-rogue", "200 MB")
	debug.FreeOSMemory()
	before, most, events := taken(), int64(0), 0
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "t", Args: []byte(`{}`)}, func(host.Event) {
		if events++; events%50 == 0 {
			most = max(most, taken())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	most = max(most, taken())
	if len(res.Text) != 10<<20 || res.Dropped != 190<<20+int64(len("fine")) {
		t.Errorf("kept %d, dropped %d", len(res.Text), res.Dropped)
	}
	const limit = 16 << 20
	t.Logf("200 MB of output took %.1f MB of memory", float64(most-before)/(1<<20))
	if most-before > limit && !raced {
		t.Errorf("the host grew by %d bytes, want at most %d", most-before, limit)
	}
}

// All progress is written to the journal.
func TestAFloodOfProgressDoesNotFillTheJournal(t *testing.T) {
	p := start(t, exe(t), "serve-rogue", "progress")
	size, last := 0, ""
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "t", Args: []byte(`{}`)}, func(e host.Event) {
		size, last = size+len(e.Progress), e.Progress
	})
	if err != nil || res.IsError {
		t.Fatal(res, err)
	}
	if size > 1<<20 {
		t.Errorf("80 MB of progress became %d bytes", size)
	}
	if !strings.HasSuffix(last, " progress updates were not shown)") {
		t.Errorf("the last is %.80q", last)
	}
}
