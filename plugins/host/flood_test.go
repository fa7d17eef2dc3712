package host_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"agentctl.dev/agentctl/plugins/host"
)

// taken is the memory of this process that the operating system has no longer.
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
