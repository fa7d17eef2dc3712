package control

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// priorityQueue is the order in which a controller processes its objects: those of runs that
// continue before those that wait, and each lane in the order of arrival. The work queue
// of client-go above it ensures that an object is queued once and processed by one worker
// at a time.
//
// The priority queue of controller-runtime v0.24 would do the same, but it cannot be
// stopped: it waits, holding a lock, for a worker that has ended.
type priorityQueue struct {
	mu sync.Mutex
	// first are the objects that are looked at ahead.
	first map[reconcile.Request]bool
	// lane is the lane of a queued object. An entry in a lane that the object has left is
	// skipped.
	lane  map[reconcile.Request]int
	lines [2][]reconcile.Request
}

const (
	aheadLane = iota
	usualLane
)

func newPriorityQueue() *priorityQueue {
	return &priorityQueue{first: map[reconcile.Request]bool{}, lane: map[reconcile.Request]int{}}
}

// queue returns the work queue of a controller that looks at its objects in this order.
func (l *priorityQueue) queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: l})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: plain})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}

// ahead has an object looked at ahead from now on, however it is added.
func (l *priorityQueue) ahead(req reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first[req] = true
}

// behind takes that back.
func (l *priorityQueue) behind(req reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.first, req)
}

// Push implements workqueue.Queue.
func (l *priorityQueue) Push(req reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := usualLane
	if l.first[req] {
		to = aheadLane
	}
	l.put(req, to)
}

// Touch implements workqueue.Queue: an object that is queued is added again.
func (l *priorityQueue) Touch(req reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first[req] && l.lane[req] == usualLane {
		l.put(req, aheadLane)
	}
}

func (l *priorityQueue) put(req reconcile.Request, to int) {
	l.lane[req] = to
	l.lines[to] = append(l.lines[to], req)
}

// Len implements workqueue.Queue.
func (l *priorityQueue) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lane)
}

// Pop implements workqueue.Queue. It is called when something is queued only.
func (l *priorityQueue) Pop() reconcile.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.lines {
		for len(l.lines[n]) > 0 {
			req := l.lines[n][0]
			l.lines[n] = l.lines[n][1:]
			if at, queued := l.lane[req]; queued && at == n {
				delete(l.lane, req)
				return req
			}
		}
	}
	return reconcile.Request{}
}
