package main

import (
	"context"
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
)

// giveBack gives memory back to the system whenever a busy time is over, the start
// among them: what it leaves is garbage that nothing would collect while nobody
// asks. It ends with the context.
func giveBack(ctx context.Context) {
	t := time.NewTicker(memoryEvery)
	defer t.Stop()
	var m thrift
	for {
		select {
		case <-t.C:
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

// allocated is how many bytes this process has allocated, ever.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
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
