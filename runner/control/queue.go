package control

// queue is a line in front of the workers that is fair: namespaces take turns,
// and in a namespace agents, so that a thousand runs of one do not keep another
// waiting. Runs of one agent keep their order.
type queue struct {
	namespaces ring[*ring[*line]]
	n          int
}

// ring is a list that is served in turns.
type ring[T any] struct {
	names []string
	of    map[string]T
}

func (r *ring[T]) get(name string, start func() T) T {
	if v, ok := r.of[name]; ok {
		return v
	}
	if r.of == nil {
		r.of = map[string]T{}
	}
	v := start()
	r.of[name] = v
	r.names = append(r.names, name)
	return v
}

// turn moves the first name to the end, or drops it.
func (r *ring[T]) turn(keep bool) {
	name := r.names[0]
	r.names = r.names[1:]
	if keep {
		r.names = append(r.names, name)
	} else {
		delete(r.of, name)
	}
}

type line struct{ items []*item }

func (q *queue) push(i *item) {
	agents := q.namespaces.get(i.work.Namespace, func() *ring[*line] { return &ring[*line]{} })
	l := agents.get(i.work.Agent, func() *line { return &line{} })
	l.items = append(l.items, i)
	q.n++
}

// pop returns the next item; nil if the queue is empty.
func (q *queue) pop() *item {
	if q.n == 0 {
		return nil
	}
	q.n--
	agents := q.namespaces.of[q.namespaces.names[0]]
	l := agents.of[agents.names[0]]
	next := l.items[0]
	l.items = l.items[1:]
	agents.turn(len(l.items) > 0)
	q.namespaces.turn(len(agents.names) > 0)
	return next
}
