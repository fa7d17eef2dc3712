package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// memoryEvery is how often it is looked whether a busy time is over.
	memoryEvery = 5 * time.Second
	// quietBytes are less than anybody's request makes in that time; who serves
	// nobody makes fewer.
	quietBytes = 4 << 20
	// worthBytes have to have been made since memory was last given back: that
	// takes a collection.
	worthBytes = 16 << 20
	// memoryFloor is the memory below which the collector runs as often as it does by
	// default.
	memoryFloor = 256 << 20
)

// giveBack gives memory back to the system whenever a busy time is over, the start
// among them: what it leaves is garbage that nothing would collect while nobody
// asks. It ends with the context. Meanwhile it bounds the memory of a busy time,
// unless GOMEMLIMIT does: what is left of a high peak is spread over many pages, of
// which none can be given back.
func giveBack(ctx context.Context) {
	t := time.NewTicker(memoryEvery)
	defer t.Stop()
	limit := func() {}
	if os.Getenv("GOMEMLIMIT") == "" {
		before := debug.SetMemoryLimit(-1)
		defer debug.SetMemoryLimit(before)
		limit = func() { debug.SetMemoryLimit(memoryLimit(metric("/gc/heap/live:bytes"))) }
	}
	limit()
	var m thrift
	for {
		select {
		case <-t.C:
			limit()
			if m.due(allocated()) {
				giveBackNow()
				m.gave(allocated())
			}
		case <-ctx.Done():
			return
		}
	}
}

// thrift decides when memory is given back.
type thrift struct {
	// last and given are what had been allocated, ever, when it was looked and when
	// memory was given back.
	last, given uint64
}

func (t *thrift) due(allocated uint64) bool {
	quiet := allocated-t.last < quietBytes
	t.last = allocated
	return quiet && allocated-t.given >= worthBytes
}

func (t *thrift) gave(allocated uint64) { t.last, t.given = allocated, allocated }

// memoryLimit is the soft limit of the runtime for a heap of which so many bytes are
// in use. It leaves room for as much garbage as half of them: a limit that is near to
// what is in use would have the collector run without a pause.
func memoryLimit(live uint64) int64 {
	return int64(max(memoryFloor, live+live/2+memoryFloor/4)) //nolint:gosec // less than the address space
}

// allocated is how many bytes this process has allocated, ever.
func allocated() uint64 { return metric("/gc/heap/allocs:bytes") }

// metric is a number that the runtime counts; 0: it does not know it.
func metric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

func giveBackNow() {
	debug.FreeOSMemory()
	dropPages()
}
