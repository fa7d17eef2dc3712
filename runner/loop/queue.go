package loop

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errGone is why a call does not run whose client has given it up before its turn.
var errGone = errors.New("the client no longer waits for it")

// queue gives the calls of clients their turns, in the order in which they entered: so
// many at a time as the limit allows, and an exclusive call alone. A call that waits for
// a person is not in the queue.
type queue struct {
	limit   int
	clients Clients

	mu      sync.Mutex
	waiting []*turn
	turns   map[*call]*turn // of the calls that are in the queue or have their turn
	running int
	alone   bool // the call that runs is exclusive
	begun   int  // the turns that have begun
}

// turn is the place of a call in the queue.
type turn struct {
	*call
	ready  chan struct{} // closed when the turn begins
	before int           // the turns that had begun by then
}

// moment is a point in time between turns.
type moment struct {
	begun int
	busy  bool // calls were running, or waiting for their turn
}

func newQueue(limit int, clients Clients) *queue {
	return &queue{limit: max(1, limit), clients: clients, turns: map[*call]*turn{}}
}

func (q *queue) moment() moment {
	q.mu.Lock()
	defer q.mu.Unlock()
	return moment{begun: q.begun, busy: q.running > 0 || len(q.waiting) > 0}
}

// enter adds a call to the end of the queue, unless it is in it.
func (q *queue) enter(c *call) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.turns[c]; t != nil {
		return t
	}
	t := &turn{call: c, ready: make(chan struct{})}
	q.turns[c] = t
	q.waiting = append(q.waiting, t)
	q.next()
	return t
}

// next begins the turns that may begin. The caller holds mu.
func (q *queue) next() {
	for len(q.waiting) > 0 {
		t := q.waiting[0]
		if q.alone || q.running >= q.limit || t.exclusive && q.running > 0 {
			return
		}
		q.waiting = q.waiting[1:]
		t.before = q.begun
		q.begun++
		q.running++
		q.alone = t.exclusive
		close(t.ready)
	}
}

// quit ends the turn of a call, or takes it out of the queue.
func (q *queue) quit(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.turns[c]
	if t == nil {
		return
	}
	delete(q.turns, c)
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else {
		q.running--
		q.alone = false
	}
	q.next()
}

// turns are the places of one call that was judged at a moment.
type turns struct {
	*queue
	judged moment
}

// take implements places. A call whose turn was not the next thing to happen has waited:
// it is judged again.
func (t turns) take(ctx context.Context, c *call) error {
	own, release := t.clients.Within(ctx, c.ID)
	defer release()
	turn := t.enter(c)
	select {
	case <-turn.ready:
		c.waited = c.waited || turn.before != t.judged.begun
		return nil
	case <-own.Done():
		t.quit(c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errGone
	}
}

func (t turns) free(c *call) { t.quit(c) }
