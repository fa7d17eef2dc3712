package client

import "context"

// Goal reports whether an object is in the state that the caller waits for; nil
// is an object that does not exist.
type Goal func(Object) bool

// Gone is the goal of an object that is not there.
func Gone(o Object) bool { return o == nil }

// Exists is the goal of an object that is there.
func Exists(o Object) bool { return o != nil }

// Await waits until an object reaches the goal. An object that is deleted and
// created again is another object: a wait for its end has an end.
func (c *Client) Await(ctx context.Context, ref Ref, goal Goal) error {
	now, err := c.Get(ctx, ref)
	if err != nil && !Missing(err) {
		return err
	}
	if goal(now) {
		return nil
	}
	uid := now.Text("metadata", "uid")
	options := WatchOptions{ListOptions: ListOptions{Kind: ref.Kind, Namespace: ref.Namespace, Fields: "metadata.name=" + ref.Name}}
	options.Empty = func() bool { return !goal(nil) }
	return c.Watch(ctx, options, func(x Change) bool {
		if x.Type == Deleted || uid != "" && x.Object.Text("metadata", "uid") != uid && goal(nil) {
			return !goal(nil)
		}
		return !goal(x.Object)
	})
}
