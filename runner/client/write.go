package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"agentctl.dev/agentctl/api/crds"
)

// WriteOptions are those of every change.
type WriteOptions struct {
	// DryRun makes the server validate the write without storing it.
	DryRun bool
	// As is the part of this program that changes something other than by apply:
	// "edit" or "label". It is in the name of the field manager.
	As string
	// Force takes over fields from other managers.
	Force bool
}

func (o WriteOptions) query() url.Values {
	q := url.Values{"fieldManager": {FieldManager}, "fieldValidation": {"Strict"}}
	if o.As != "" {
		q.Set("fieldManager", FieldManager+"-"+o.As)
	}
	if o.DryRun {
		q.Set("dryRun", "All")
	}
	return q
}

// kindOf finds the schema of a kind that was resolved before.
func kindOf(kind string) (*crds.KindSchema, error) {
	k, ok := crds.Kind(kind)
	if !ok {
		return nil, fail(nil, "there is no kind %q", kind)
	}
	return k, nil
}

// Get returns one object.
func (c *Client) Get(ctx context.Context, ref Ref) (Object, error) {
	return c.object(ctx, ref, request{method: http.MethodGet})
}

// Apply declares an object by server-side apply: fields that were declared
// before and no longer are get removed, those of other managers stay.
func (c *Client) Apply(ctx context.Context, o Object, w WriteOptions) (Object, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fail(err, "encode %s", o.Ref())
	}
	q := w.query()
	q.Set("force", "false")
	if w.Force {
		q.Set("force", "true")
	}
	// JSON is YAML, and faster to read.
	return c.object(ctx, o.Ref(), request{method: http.MethodPatch, query: q, contentType: "application/apply-patch+yaml", body: body})
}

// Merge changes fields of an object by a JSON merge patch.
func (c *Client) Merge(ctx context.Context, ref Ref, patch any, w WriteOptions) (Object, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fail(err, "encode the change of %s", ref)
	}
	return c.object(ctx, ref, request{method: http.MethodPatch, query: w.query(), contentType: "application/merge-patch+json", body: body})
}

// Replace writes a whole object; it is refused when the object has changed since
// it was read.
func (c *Client) Replace(ctx context.Context, o Object, w WriteOptions) (Object, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fail(err, "encode %s", o.Ref())
	}
	return c.object(ctx, o.Ref(), request{method: http.MethodPut, query: w.query(), contentType: asJSON, body: body})
}

// rounds is how often a change is tried that others come before.
const rounds = 5

// Change reads an object again and changes it, and repeats this while other
// clients change it at the same time. before is the object that the change was
// made for. change is called with the current object; it returns an error if
// the change no longer applies.
func (c *Client) Change(ctx context.Context, before Object, change func(Object) (Object, error)) (Object, error) {
	for round := 1; ; round++ {
		after, err := change(before)
		if !Conflict(err) || round == rounds {
			return after, err
		}
		now, getErr := c.Get(ctx, before.Ref())
		if getErr != nil {
			return nil, getErr
		}
		before = now
	}
}

// Propagation is what becomes of the objects that an object owns.
type Propagation string

// The propagations, as the API spells them.
const (
	Background Propagation = "Background"
	Foreground Propagation = "Foreground"
	Orphan     Propagation = "Orphan"
)

// DeleteOptions are those of Delete.
type DeleteOptions struct {
	Propagation Propagation
	DryRun      bool
	// UID is that of the object to delete: another object of the same name
	// stays. Optional.
	UID string
}

// Delete asks for the end of an object. It may take its time: something may
// have to be cleaned up first.
func (c *Client) Delete(ctx context.Context, ref Ref, o DeleteOptions) error {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	if o.Propagation != "" {
		options["propagationPolicy"] = o.Propagation
	}
	if o.UID != "" {
		options["preconditions"] = map[string]any{"uid": o.UID}
	}
	q := url.Values{}
	if o.DryRun {
		options["dryRun"] = []string{"All"}
		q.Set("dryRun", "All")
	}
	body, err := json.Marshal(options)
	if err != nil {
		return fail(err, "encode how to delete %s", ref)
	}
	_, err = c.object(ctx, ref, request{method: http.MethodDelete, query: q, contentType: asJSON, body: body})
	return err
}

// object sends a request about one object and reads the object in the answer.
func (c *Client) object(ctx context.Context, ref Ref, r request) (Object, error) {
	ref.Namespace = c.Namespace(ref.Namespace)
	path, err := pathOf(ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if ref.Name == "" {
		return nil, fail(nil, "a %s without a name", strings.ToLower(ref.Kind))
	}
	if err := ref.named(); err != nil {
		return nil, err
	}
	r.path, r.about = path, ref
	if r.sub != "" {
		r.path += "/" + r.sub
	}
	raw, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	o, err := decodeObject(raw)
	if err != nil {
		return nil, c.strange(r, "its answer is no object: %v", err)
	}
	return o, nil
}
