package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// ShareKey names the containers that runs of the same policies may share: one
// for all specs that are alike. It is "" when the container would hold anything
// of one run: files, variables (they may be secrets), mounts, or a connection
// that is written into one run's journal.
func (s *Spec) ShareKey(policies string) string {
	private := s.Workspace != "" || len(s.Env) > 0 || len(s.Mounts) > 0 || (s.Network != "" && s.Network != v1alpha1.NetworkNone)
	ref, err := ParseReference(s.Image)
	if private || err != nil {
		return ""
	}
	text, err := json.Marshal([]any{ref.Digest, s.Argv, s.Dir, s.Limits.withDefaults(), s.RuntimeClass, policies})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// WarmOptions say how a Warm keeps what it has started.
type WarmOptions[T any] struct {
	// Stop ends one. Required.
	Stop func(T)
	// Alive says whether one can still be used. Default always.
	Alive func(T) bool
	// Most of one key at a time; more users share them. Default 4.
	Most int
	// Idle is how long one is kept that nobody uses. Default 60 s.
	Idle time.Duration
}

// Warm keeps what is slow to start, by key, for whoever needs the same next:
// stateless tools in containers. It holds a container's plugin or the container.
type Warm[T any] struct {
	opts WarmOptions[T]

	mu       sync.Mutex
	closed   bool
	kept     map[string][]*warm[T]
	stopping sync.WaitGroup
}

type warm[T any] struct {
	ready chan struct{}
	value T
	err   error
	users int
	idle  *time.Timer
}

// NewWarm returns an empty Warm. Close it.
func NewWarm[T any](opts WarmOptions[T]) *Warm[T] {
	if opts.Alive == nil {
		opts.Alive = func(T) bool { return true }
	}
	if opts.Most <= 0 {
		opts.Most = 4
	}
	if opts.Idle <= 0 {
		opts.Idle = time.Minute
	}
	return &Warm[T]{opts: opts, kept: map[string][]*warm[T]{}}
}

// Get returns one of the key, started by start if none is free and there are
// not too many, and what gives it back. A start that fails is the error of all
// who waited for it, and is tried anew by the next.
func (w *Warm[T]) Get(ctx context.Context, key string, start func(context.Context) (T, error)) (value T, release func(), err error) {
	one, begin, err := w.pick(key)
	if err != nil {
		return value, nil, err
	}
	if begin {
		one.value, one.err = start(ctx)
		close(one.ready)
	} else {
		select {
		case <-one.ready:
		case <-ctx.Done():
			w.release(key, one)
			return value, nil, context.Cause(ctx)
		}
	}
	if one.err != nil {
		w.forget(key, one)
		return value, nil, one.err
	}
	return one.value, sync.OnceFunc(func() { w.release(key, one) }), nil
}

// pick takes a free one, else a new one, else the least used.
func (w *Warm[T]) pick(key string) (one *warm[T], begin bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, false, errors.New("what was kept warm is closed")
	}
	w.dropDead(key)
	for _, k := range w.kept[key] {
		if one == nil || k.users < one.users {
			one = k
		}
	}
	if one == nil || (one.users > 0 && len(w.kept[key]) < w.opts.Most) {
		one, begin = &warm[T]{ready: make(chan struct{})}, true
		w.kept[key] = append(w.kept[key], one)
	}
	if one.idle != nil {
		one.idle.Stop()
		one.idle = nil
	}
	one.users++
	return one, begin, nil
}

// dropDead forgets those that ended by themselves. Users keep what they have.
func (w *Warm[T]) dropDead(key string) {
	var alive []*warm[T]
	for _, k := range w.kept[key] {
		select {
		case <-k.ready:
			if k.err == nil && !w.opts.Alive(k.value) {
				w.stop(k)
				continue
			}
		default:
		}
		alive = append(alive, k)
	}
	w.kept[key] = alive
}

// release gives one back; the last user's begins its idle time.
func (w *Warm[T]) release(key string, one *warm[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.users--
	if one.users > 0 || w.closed {
		return
	}
	one.idle = time.AfterFunc(w.opts.Idle, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if one.users == 0 && w.remove(key, one) {
			w.stop(one)
		}
	})
}

// forget drops one that did not start.
func (w *Warm[T]) forget(key string, one *warm[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.users--
	w.remove(key, one)
}

func (w *Warm[T]) remove(key string, one *warm[T]) (found bool) {
	for i, k := range w.kept[key] {
		if k == one {
			w.kept[key] = append(w.kept[key][:i:i], w.kept[key][i+1:]...)
			if len(w.kept[key]) == 0 {
				delete(w.kept, key)
			}
			return true
		}
	}
	return false
}

// stop ends one in the background; Close waits for it. The mutex is held.
func (w *Warm[T]) stop(one *warm[T]) {
	if one.idle != nil {
		one.idle.Stop()
	}
	w.stopping.Go(func() {
		<-one.ready
		if one.err == nil {
			w.opts.Stop(one.value)
		}
	})
}

// Close ends everything, also what is in use, and waits for it.
func (w *Warm[T]) Close() {
	w.mu.Lock()
	w.closed = true
	for key, all := range w.kept {
		for _, one := range all {
			w.stop(one)
		}
		delete(w.kept, key)
	}
	w.mu.Unlock()
	w.stopping.Wait()
}
