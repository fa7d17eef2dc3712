package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"agentctl.dev/agentctl/api/crds"
)

// workers is how many objects are written at the same time.
const workers = 8

// The results of an apply, in the words of kubectl.
const (
	Created    = "created"
	Configured = "configured"
	Unchanged  = "unchanged"
	Pruned     = "pruned"
)

// Outcome is what became of one object.
type Outcome struct {
	Ref Ref
	// Verb is what was done; "" when Err is set.
	Verb string
	// Object is what is kept now; nil when it is gone, or nothing was done.
	Object Object
	Err    error
}

// ErrNotSent is the error of an object that was not sent any more: the server
// does not answer.
var ErrNotSent = errors.New("not sent, because the server does not answer any more")

// ApplyAll applies objects, several at a time, and reports each in the order
// given. An object that is refused does not stop the others: the controllers
// handle references to objects that do not exist yet. When the server does not
// answer any more, the rest is ErrNotSent.
func (c *Client) ApplyAll(ctx context.Context, objects []Object, w WriteOptions, told func(Outcome)) {
	before, err := c.before(ctx, objects)
	if err != nil {
		told(Outcome{Ref: Ref{Kind: objects[0].Kind()}, Err: err})
		for _, o := range objects[1:] {
			told(Outcome{Ref: o.Ref(), Err: ErrNotSent})
		}
		return
	}
	done := make([]chan Outcome, len(objects))
	for i := range done {
		done[i] = make(chan Outcome, 1)
	}
	var next atomic.Int64
	var lost atomic.Bool
	var group sync.WaitGroup
	for range min(workers, len(objects)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(objects); i = int(next.Add(1)) - 1 {
				if lost.Load() {
					done[i] <- Outcome{Ref: objects[i].Ref(), Err: ErrNotSent}
					continue
				}
				x := c.applyOne(ctx, objects[i], before, w)
				if _, answered := errors.AsType[*StatusError](x.Err); x.Err != nil && !answered {
					lost.Store(true)
				}
				done[i] <- x
			}
		})
	}
	for i := range done {
		told(<-done[i])
	}
	group.Wait()
}

// many is the number of objects of a kind from which a list is faster than to
// ask for each.
const many = 20

// scope is a kind in a namespace.
type scope struct{ kind, namespace string }

// before lists what there is of kinds of which many are applied.
func (c *Client) before(ctx context.Context, objects []Object) (map[scope]map[string]Object, error) {
	count := map[scope]int{}
	for _, o := range objects {
		count[scope{o.Kind(), c.Namespace(o.Namespace())}]++
	}
	all := map[scope]map[string]Object{}
	for s, n := range count {
		if n < many {
			continue
		}
		found, _, err := c.List(ctx, ListOptions{Kind: s.kind, Namespace: s.namespace})
		if err != nil {
			return nil, err
		}
		all[s] = make(map[string]Object, len(found))
		for _, o := range found {
			all[s][o.Name()] = o
		}
	}
	return all, nil
}

func (c *Client) applyOne(ctx context.Context, o Object, known map[scope]map[string]Object, w WriteOptions) Outcome {
	ref := o.Ref()
	ref.Namespace = c.Namespace(ref.Namespace)
	listed, ok := known[scope{ref.Kind, ref.Namespace}]
	before := listed[ref.Name]
	if !ok {
		var err error
		if before, err = c.Get(ctx, ref); err != nil && !Missing(err) {
			return Outcome{Ref: ref, Err: err}
		}
	}
	after, err := c.Apply(ctx, o, w)
	switch {
	case err != nil:
		return Outcome{Ref: ref, Err: err}
	case before == nil:
		return Outcome{Ref: ref, Verb: Created, Object: after}
	case !Differ(before, after): // the version may differ: controllers write the status
		return Outcome{Ref: ref, Verb: Unchanged, Object: after}
	}
	return Outcome{Ref: ref, Verb: Configured, Object: after}
}

// PruneOptions select which objects are deleted when they are no longer
// declared.
type PruneOptions struct {
	// Namespaces and Labels are the scope. Both are required.
	Namespaces []string
	Labels     string
	DryRun     bool
}

// Prune deletes the objects of the scope that this program has applied before
// and that are not among those to keep. What others have made stays.
func (c *Client) Prune(ctx context.Context, o PruneOptions, keep []Ref, told func(Outcome)) error {
	if strings.TrimSpace(o.Labels) == "" {
		return errors.New("prune without a selector")
	}
	for _, kind := range crds.Kinds() {
		for _, namespace := range o.Namespaces {
			objects, _, err := c.List(ctx, ListOptions{Kind: kind, Namespace: namespace, Labels: o.Labels})
			if err != nil {
				return err
			}
			for _, x := range objects {
				if x.Text("metadata", "deletionTimestamp") != "" || !x.Applied() || slices.Contains(keep, x.Ref()) {
					continue
				}
				err := c.Delete(ctx, x.Ref(), DeleteOptions{Propagation: Background, DryRun: o.DryRun, UID: x.Text("metadata", "uid")})
				if Missing(err) {
					continue // another client was faster
				}
				told(Outcome{Ref: x.Ref(), Verb: Pruned, Err: err})
			}
		}
	}
	return nil
}
