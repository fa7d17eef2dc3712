package tool

import "context"

// Begun are processes that one pool has begun to start, on their way to another pool that
// knows more about the run. They belong to the pool that is made with them.
type Begun struct{ processes map[string]*started }

// StartShipped starts the program of the shipped tools ahead of everything
// else: it is trusted, takes longest to be ready, and does nothing before its
// first call. Tools that declare variables are left out; their values are not
// known yet.
func (p *Pool) StartShipped(ctx context.Context, tools []Definition) {
	for i := range tools {
		if d := &tools[i]; d.Shipped != "" && !d.Host && len(d.Spec.Env) == 0 {
			p.Start(ctx, tools[i:i+1])
			return
		}
	}
}

// HandOver returns the processes of the pool, which has none afterwards.
func (p *Pool) HandOver() *Begun {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &Begun{processes: map[string]*started{}}
	for key, g := range p.processes {
		g.mu.Lock()
		if g.current != nil {
			b.processes[key] = g.current
		}
		g.mu.Unlock()
	}
	clear(p.processes)
	return b
}

// adopt makes processes that were begun those of the pool: a tool with the same program,
// profile and environment uses them, and Close waits for them and ends them.
func (p *Pool) adopt(b *Begun) {
	for key, run := range b.processes {
		p.processes[key] = &Process{pool: p, functions: map[string]string{}, current: run, starts: 1}
		p.starting.Go(func() { <-run.ready })
	}
}
