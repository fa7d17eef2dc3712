package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chunk is how many objects one answer of a list may hold.
const chunk = 500

// maxChunks bounds a list: a server could hand out chunks for ever.
const maxChunks = 2000

// ListOptions select the objects.
type ListOptions struct {
	// Kind of the objects. Required.
	Kind string
	// Namespace of the objects; "" is that of the context.
	Namespace string
	// AllNamespaces asks for those of every namespace.
	AllNamespaces bool
	// Labels and Fields are selectors. Optional.
	Labels, Fields string
	// Objects requests whole objects next to the rows of a table.
	Objects bool
}

func (c *Client) path(o ListOptions) (string, error) {
	namespace := c.Namespace(o.Namespace)
	if err := (Ref{Namespace: namespace}).named(); err != nil {
		return "", err
	}
	if o.AllNamespaces {
		namespace = ""
	}
	return pathOf(o.Kind, namespace, "")
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	if o.Labels != "" {
		q.Set("labelSelector", o.Labels)
	}
	if o.Fields != "" {
		q.Set("fieldSelector", o.Fields)
	}
	return q
}

// List returns the objects and the version at which a watch can go on.
func (c *Client) List(ctx context.Context, o ListOptions) (objects []Object, version string, err error) {
	for raw, err := range c.chunks(ctx, o, asJSON, o.query()) {
		if err != nil {
			return nil, "", err
		}
		var l struct {
			Metadata struct{ ResourceVersion string }
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, "", c.strange(request{about: Ref{Kind: o.Kind}}, "its answer is no list: %v", err)
		}
		for _, item := range l.Items {
			object, err := decodeObject(item)
			if err != nil {
				return nil, "", c.strange(request{about: Ref{Kind: o.Kind}}, "its list holds something that is no object: %v", err)
			}
			if object.Kind() == "" { // objects of a list may leave out the type that its head has
				object["apiVersion"], object["kind"] = versionOf(o.Kind), o.Kind
			}
			objects = append(objects, object)
		}
		version = l.Metadata.ResourceVersion
	}
	return objects, version, nil
}

// Table returns the objects as a table: the server knows the columns.
func (c *Client) Table(ctx context.Context, o ListOptions) (*metav1.Table, error) {
	q := o.query()
	if o.Objects {
		q.Set("includeObject", "Object")
	}
	var whole *metav1.Table
	for raw, err := range c.chunks(ctx, o, asTable, q) {
		if err != nil {
			return nil, err
		}
		t, err := c.table(raw, o.Kind)
		if err != nil {
			return nil, err
		}
		if whole != nil {
			t.Rows, t.ColumnDefinitions = append(whole.Rows, t.Rows...), whole.ColumnDefinitions
		}
		whole = t
	}
	return whole, nil
}

// TableOf returns one object as a table.
func (c *Client) TableOf(ctx context.Context, ref Ref) (*metav1.Table, error) {
	ref.Namespace = c.Namespace(ref.Namespace)
	if err := ref.named(); err != nil {
		return nil, err
	}
	path, err := pathOf(ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	r := request{
		method: http.MethodGet, path: path, accept: asTable, about: ref,
		query: url.Values{"includeObject": {"Object"}},
	}
	raw, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.table(raw, ref.Kind)
}

func (c *Client) table(raw []byte, kind string) (*metav1.Table, error) {
	t := &metav1.Table{}
	if err := json.Unmarshal(raw, t); err != nil || t.Kind != "Table" {
		return nil, c.strange(request{about: Ref{Kind: kind}}, "its answer is no table")
	}
	return t, nil
}

// chunks yields the answers to a list, one after the other. When a list has
// grown so old that its rest is gone, the list is an error: half of one list and
// half of another would be none.
func (c *Client) chunks(ctx context.Context, o ListOptions, accept string, q url.Values) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		path, err := c.path(o)
		if err != nil {
			yield(nil, err)
			return
		}
		q.Set("limit", strconv.Itoa(chunk))
		for range maxChunks {
			r := request{method: http.MethodGet, path: path, query: q, accept: accept, limit: maxList, about: Ref{Kind: o.Kind}}
			raw, err := c.send(ctx, r)
			if err != nil || !yield(raw, nil) {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			var head struct{ Metadata struct{ Continue string } }
			if err := json.Unmarshal(raw, &head); err != nil {
				yield(nil, c.strange(r, "its answer is no JSON: %v", err))
				return
			}
			if head.Metadata.Continue == "" {
				return
			}
			q.Set("continue", head.Metadata.Continue)
		}
		yield(nil, c.strange(request{about: Ref{Kind: o.Kind}}, "its list does not end"))
	}
}

// RowObject reads the object next to a row: its metadata at least.
func RowObject(row *metav1.TableRow) (Object, error) { return decodeObject(row.Object.Raw) }
