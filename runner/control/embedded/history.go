package embedded

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

const (
	// forgetEvery is how often it is looked whether history can be forgotten, and
	// forgetFrom how many writes of a kind are worth it: each is about 10 KB.
	forgetEvery = 30 * time.Second
	forgetFrom  = 256
	// forgetLarge is the number of writes of a kind that are forgotten although
	// clients watch it, whose watches end: a client that watches for days would keep
	// hundreds of megabytes otherwise. Every client of the API has to expect the end of
	// a watch.
	forgetLarge = 4096
	// forgetHuge is the number of writes of a kind that are forgotten in the busy time
	// itself: they bound the memory that a long busy time takes, and the holes that it
	// leaves in the heap.
	forgetHuge = 8192
	// forgetPatience bounds the time in which a new cache has to get ready.
	forgetPatience = 10 * time.Second
)

// histories are the watch caches of the kinds of agentctl. Each keeps the
// objects of the latest writes, up to 100,000 of them, for clients that resume
// a watch; it drops them only for newer ones. After a busy time they are most
// of the memory of this process, so a cache is then replaced by a new one. A
// small cache is replaced when there are no writes and no other client is
// connected with a request, a large cache as soon as there are few writes, a
// huge cache always. The clients that watch it, among them the controllers of
// this process, list the objects again then.
type histories struct {
	forgot func() // what is done when some has been forgotten

	mu  sync.Mutex
	all map[*history]struct{}
}

func newHistories(forgot func()) *histories {
	return &histories{forgot: forgot, all: map[*history]struct{}{}}
}

// getter has the storage of a resource built by one that can forget.
type getter struct {
	generic.RESTOptionsGetter
	histories *histories
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err == nil && resource.Group == group {
		o.Decorator = g.histories.decorate
	}
	return o, err
}

// decorate is a generic.StorageDecorator.
func (h *histories) decorate(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error), newObject, newList func() runtime.Object,
	attrs storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	one := &history{open: func() (storage.Interface, factory.DestroyFunc, error) {
		return genericregistry.StorageWithCacher()(config, prefix, key, newObject, newList, attrs, trigger, indexers)
	}}
	var err error
	if one.inner, one.destroy, err = one.open(); err != nil {
		return nil, one.destroy, err
	}
	h.mu.Lock()
	h.all[one] = struct{}{}
	h.mu.Unlock()
	return one, func() {
		h.mu.Lock()
		delete(h.all, one)
		h.mu.Unlock()
		one.close()
	}, nil
}

// run forgets until the context ends. idle reports that no client but this
// process has a long-running request.
func (h *histories) run(ctx context.Context, idle func() bool) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if h.forget(ctx, idle()) {
				h.forgot()
			}
		case <-ctx.Done():
			return
		}
	}
}

// forget replaces the caches whose busy time is over and those that are huge,
// and reports whether the busy time of one was over: only then the memory is
// not needed again at once. idle reports that no client but this process has a
// long-running request.
func (h *histories) forget(ctx context.Context, idle bool) (some bool) {
	h.mu.Lock()
	all := make([]*history, 0, len(h.all))
	for one := range h.all {
		all = append(all, one)
	}
	h.mu.Unlock()
	for _, one := range all {
		writes := one.writes.Load()
		lately, all := writes-one.seen, writes-one.forgotten
		one.seen = writes
		small := idle && lately == 0 && all >= forgetFrom
		large := lately < forgetFrom && all >= forgetLarge
		if !small && !large && all < forgetHuge {
			continue
		}
		if one.reopen(ctx) == nil { // otherwise it is tried again
			one.forgotten = writes
			some = some || small || large
		}
	}
	return some
}

// history is the storage of a kind, with a cache that can be replaced.
type history struct {
	open   func() (storage.Interface, factory.DestroyFunc, error)
	writes atomic.Int64
	// seen and forgotten are how many writes there were when it was looked last, and
	// when the cache was made.
	seen, forgotten int64

	mu      sync.RWMutex
	inner   storage.Interface
	destroy factory.DestroyFunc
	keys    storage.KeysFunc
	closed  bool
}

var errClosed = errors.New("the storage is closed")

// reopen replaces the cache by one without history. Watches of the old one end.
func (h *history) reopen(ctx context.Context) error {
	inner, destroy, err := h.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for inner.ReadinessCheck() != nil {
		select {
		case <-again.C:
		case <-ctx.Done():
			destroy()
			return ctx.Err()
		}
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		destroy()
		return errClosed
	}
	if h.keys != nil {
		if err := inner.EnableResourceSizeEstimation(h.keys); err != nil {
			h.mu.Unlock()
			destroy()
			return err
		}
	}
	old := h.destroy
	h.inner, h.destroy = inner, destroy
	h.mu.Unlock()
	old()
	return nil
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.destroy()
	}
}

// Versioner implements storage.Interface, as do the methods below: each is that of
// the present cache, which is not replaced meanwhile.
func (h *history) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (h *history) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.writes.Add(1)
	return h.inner.Create(ctx, key, obj, out, ttl)
}

func (h *history) Delete(ctx context.Context, key string, out runtime.Object, p *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object, o storage.DeleteOptions) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.writes.Add(1)
	return h.inner.Delete(ctx, key, out, p, validate, cached, o)
}

func (h *history) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, p *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.writes.Add(1)
	return h.inner.GuaranteedUpdate(ctx, key, out, ignoreNotFound, p, update, cached)
}

func (h *history) Watch(ctx context.Context, key string, o storage.ListOptions) (watch.Interface, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.Watch(ctx, key, o)
}

func (h *history) Get(ctx context.Context, key string, o storage.GetOptions, out runtime.Object) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.Get(ctx, key, o, out)
}

func (h *history) GetList(ctx context.Context, key string, o storage.ListOptions, list runtime.Object) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.GetList(ctx, key, o, list)
}

func (h *history) Stats(ctx context.Context) (storage.Stats, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.Stats(ctx)
}

func (h *history) ReadinessCheck() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.ReadinessCheck()
}

func (h *history) RequestWatchProgress(ctx context.Context) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.RequestWatchProgress(ctx)
}

func (h *history) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.GetCurrentResourceVersion(ctx)
}

func (h *history) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys = keys
	return h.inner.EnableResourceSizeEstimation(keys)
}

func (h *history) CompactRevision() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner.CompactRevision()
}
