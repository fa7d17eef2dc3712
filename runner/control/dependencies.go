package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/admission"
)

// dependencies is an object with all objects that it depends on: the input of admission, and of
// a run.
type dependencies struct {
	read      client.Reader
	namespace string
	// whole requires all dependencies to be ready, not only those that the object names
	// itself.
	whole     bool
	seen      map[string]bool
	documents []runner.Document
	// pins are what the tools among them were found to be, by call name.
	pins map[string]string
	// needs are the objects that have to be ready.
	needs []client.Object
	// missing are references that lead nowhere, as "model \"fast\"".
	missing []string
}

// dependenciesOf follows the references of an object, as far as the cache knows them.
func (b *base) dependenciesOf(ctx context.Context, obj client.Object) (*dependencies, error) {
	return (&dependencies{read: b.Client}).of(ctx, obj)
}

// cachedDependencies is currentDependencies as far as the cache knows.
func (b *base) cachedDependencies(ctx context.Context, obj client.Object) (*dependencies, error) {
	return (&dependencies{read: b.Client, whole: true}).of(ctx, obj)
}

// currentDependencies follows the references of an object as they are at this moment.
func (b *base) currentDependencies(ctx context.Context, obj client.Object) (*dependencies, error) {
	return (&dependencies{read: b.live, whole: true}).of(ctx, obj)
}

func (c *dependencies) of(ctx context.Context, obj client.Object) (*dependencies, error) {
	c.namespace, c.seen, c.pins = obj.GetNamespace(), map[string]bool{}, map[string]string{}
	if err := c.add(ctx, obj, true); err != nil {
		return nil, err
	}
	slices.Sort(c.missing)
	c.missing = slices.Compact(c.missing)
	return c, nil
}

func (c *dependencies) add(ctx context.Context, obj client.Object, first bool) error {
	name := docName(kindOf(obj), obj.GetName())
	if c.seen[name] {
		return nil
	}
	c.seen[name] = true
	d, err := document(obj)
	if err != nil {
		return err
	}
	c.documents = append(c.documents, d)
	for _, r := range references(obj) {
		if err := c.follow(ctx, r, first); err != nil {
			return err
		}
	}
	switch o := obj.(type) {
	case *v1alpha1.Agent:
		return c.selecting(ctx, o, first)
	case *v1alpha1.Tool:
		if o.Status.Digest != "" && readyOf(o).generation == o.Generation {
			c.pins[admission.CallName(o)] = o.Status.Digest
		}
	case *v1alpha1.Policy:
		if first {
			return c.allTools(ctx)
		}
	}
	return nil
}

func (c *dependencies) follow(ctx context.Context, r reference, first bool) error {
	obj := newObject(r.kind)
	err := c.read.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: r.name}, obj)
	switch {
	case apierrors.IsNotFound(err):
		if !shipped(r) {
			c.missing = append(c.missing, fmt.Sprintf("%s %q", strings.ToLower(r.kind), r.name))
		}
		return nil
	case err != nil:
		return fmt.Errorf("look for %s: %w", docName(r.kind, r.name), err)
	}
	if first || c.whole {
		c.needs = append(c.needs, obj)
	}
	return c.add(ctx, obj, false)
}

// selecting adds the policies that select an agent by its labels.
func (c *dependencies) selecting(ctx context.Context, a *v1alpha1.Agent, first bool) error {
	var all v1alpha1.PolicyList
	if err := c.read.List(ctx, &all, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list the policies: %w", err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if !admission.Concerns(p, a) || c.seen[docName(v1alpha1.KindPolicy, p.Name)] {
			continue
		}
		if first || c.whole {
			c.needs = append(c.needs, p)
		}
		if err := c.add(ctx, p, false); err != nil {
			return err
		}
	}
	return nil
}

// allTools adds every tool that a rule could match.
func (c *dependencies) allTools(ctx context.Context) error {
	var all v1alpha1.ToolList
	if err := c.read.List(ctx, &all, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list the tools: %w", err)
	}
	for i := range all.Items {
		t := all.Items[i].DeepCopy()
		d, err := document(t)
		if err != nil {
			return err
		}
		c.documents = append(c.documents, d)
	}
	return nil
}

// equal reports whether two sets of dependencies lead to the same result. Lists come in any order.
func (c *dependencies) equal(other *dependencies) bool {
	return slices.Equal(c.missing, other.missing) && maps.Equal(c.pins, other.pins) &&
		maps.Equal(c.texts(), other.texts()) && maps.Equal(c.readyStates(), other.readyStates())
}

func (c *dependencies) texts() map[string]string {
	all := make(map[string]string, len(c.documents))
	for _, d := range c.documents {
		all[d.Name] = string(d.Text)
	}
	return all
}

func (c *dependencies) readyStates() map[string]readyState {
	all := make(map[string]readyState, len(c.needs))
	for _, o := range c.needs {
		r := readyOf(o)
		r.message += "\n" + string(o.GetUID()) + fmt.Sprint(o.GetGeneration())
		all[docName(kindOf(o), o.GetName())] = r
	}
	return all
}
