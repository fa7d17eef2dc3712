package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxEvent bounds one line of a watch.
	maxEvent = maxObject
	// backoffFirst and backoffMost are the waits between two attempts to
	// continue a watch.
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
	// watchPatience is how long a server may be unreachable before a watch gives
	// up.
	watchPatience = time.Minute
)

// Change is one event of a watch: ADDED, MODIFIED or DELETED, as in the API.
type Change struct {
	Type string
	// Object is what has changed.
	Object Object
	// Cells are the object's row, and Columns describe them, when a table was
	// requested.
	Cells   []any
	Columns []metav1.TableColumnDefinition
	// More is set when further objects of the same list follow at once.
	More bool
}

// The types of changes.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	bookmark = "BOOKMARK"
)

// WatchOptions are those of Watch.
type WatchOptions struct {
	ListOptions
	// Table requests the rows of a table next to the objects.
	Table bool
	// Empty is asked when a list holds nothing: false ends the watch. Optional.
	Empty func() (more bool)
}

// Watch reports every object that exists, as ADDED, and then changes, until see
// returns false. A connection that ends is opened again at the same resource
// version; when the server does not know that version any more, everything is
// listed again. A server that does not answer for a minute ends the watch.
//
//	see returns    error of Watch
//	true           the watch continues
//	false          nil
//	-              that of the context, or of a server that refuses
func (c *Client) Watch(ctx context.Context, o WatchOptions, see func(Change) (more bool)) error {
	w := &watcher{c: c, o: o.ListOptions, accept: asJSON, see: see, empty: o.Empty, known: map[string]Change{}}
	if o.Table {
		w.accept, w.o.Objects = asTable, true
	}
	wait, heard := backoffFirst, time.Now()
	for {
		got := w.seen
		w.stood = time.Time{}
		done, err := w.follow(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !passing(err):
			return err
		}
		if w.seen > got || err == nil || lasted(w.stood) {
			wait, heard = backoffFirst, time.Now()
		}
		if err != nil && time.Since(heard) > watchPatience {
			return err
		}
		if sleep(ctx, wait) != nil {
			return context.Cause(ctx)
		}
		wait = min(2*wait, backoffMost)
	}
}

// passing reports whether it makes sense to try again: the connection broke, or
// the server is overloaded or restarts.
func passing(err error) bool {
	if _, ok := errors.AsType[*passingError](err); ok {
		return true
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && (s.Code == http.StatusTooManyRequests || s.Code >= 500 && s.Code != http.StatusNotImplemented)
}

// passingError marks an error after which the connection may be opened again.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

var errGone = &passingError{errors.New("that version is not known any more")}

// watcher is one Watch.
type watcher struct {
	c      *Client
	o      ListOptions
	accept string
	see    func(Change) bool
	empty  func() bool

	version string // "" lists first
	seen    int
	// stood is when this connection was answered.
	stood time.Time
	// known is what was last reported of each object, so that a second list
	// reports only new, changed and deleted objects.
	known   map[string]Change
	columns []metav1.TableColumnDefinition
}

// follow lists where that is needed, then watches one connection to its end.
func (w *watcher) follow(ctx context.Context) (done bool, err error) {
	if w.version == "" {
		if done, err := w.list(ctx); done || err != nil {
			return done, err
		}
	}
	path, err := w.c.path(w.o)
	if err != nil {
		return false, err
	}
	q := w.o.query()
	q.Set("watch", "1")
	q.Set("allowWatchBookmarks", "true")
	q.Set("resourceVersion", w.version)
	if w.o.Objects {
		q.Set("includeObject", "Object")
	}
	answer, err := w.c.open(ctx, request{method: http.MethodGet, path: path, query: q, accept: w.accept, about: Ref{Kind: w.o.Kind}})
	if err != nil {
		if w.seen > 0 {
			err = &passingError{err}
		}
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxObject)) // the code is enough
		return false, w.gone(w.c.status(request{about: Ref{Kind: w.o.Kind}}, answer, body))
	}
	w.stood = time.Now()
	return w.read(answer.Body)
}

// lasted reports whether a connection was not a short one: its server was there
// until now, though it may have had nothing to send.
func lasted(since time.Time) bool { return !since.IsZero() && time.Since(since) > backoffMost }

// gone turns "that version is too old" into a list.
func (w *watcher) gone(err error) error {
	if s, ok := errors.AsType[*StatusError](err); ok && s.Code == http.StatusGone {
		w.version = ""
		return errGone
	}
	return err
}

func (w *watcher) read(body io.Reader) (done bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return false, w.c.strange(request{about: Ref{Kind: w.o.Kind}}, "its watch holds something that is no JSON: %v", err)
		}
		if e.Type == "ERROR" {
			var s metav1.Status
			_ = json.Unmarshal(e.Object, &s) // a code of 0 is not a 410
			return false, w.gone(&StatusError{Code: int(s.Code), Reason: s.Reason, Message: s.Message, About: Ref{Kind: w.o.Kind}, server: w.c.name()})
		}
		change, err := w.change(e.Type, e.Object)
		if err != nil {
			return false, w.c.strange(request{about: Ref{Kind: w.o.Kind}}, "its watch holds something that is no object: %v", err)
		}
		w.seen++
		if v := change.Object.ResourceVersion(); v != "" {
			w.version = v
		}
		if e.Type != bookmark && !w.tell(change) {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return false, w.c.strange(request{about: Ref{Kind: w.o.Kind}}, "a line of its watch is larger than %d MiB", maxEvent>>20)
		}
		return false, &passingError{err}
	}
	return false, nil
}

func key(o Object) string { return o.Namespace() + "/" + o.Name() }

// change reads an event: an object, or a table with one row.
func (w *watcher) change(kind string, raw []byte) (Change, error) {
	if w.accept != asTable {
		o, err := decodeObject(raw)
		return Change{Type: kind, Object: o}, err
	}
	t := &metav1.Table{}
	if err := json.Unmarshal(raw, t); err != nil {
		return Change{}, err
	}
	if len(t.Rows) == 0 { // a bookmark has a version only
		return Change{Type: kind, Object: Object{"metadata": map[string]any{"resourceVersion": t.ResourceVersion}}}, nil
	}
	return w.row(kind, t, &t.Rows[0])
}

func (w *watcher) row(kind string, t *metav1.Table, row *metav1.TableRow) (Change, error) {
	o, err := decodeObject(row.Object.Raw)
	if len(t.ColumnDefinitions) > 0 {
		w.columns = t.ColumnDefinitions // only the first of a watch has them
	}
	return Change{Type: kind, Object: o, Cells: row.Cells, Columns: w.columns}, err
}

func (w *watcher) tell(c Change) (more bool) {
	if c.Type == Deleted {
		delete(w.known, key(c.Object))
	} else {
		w.known[key(c.Object)] = c
	}
	return w.see(c)
}

// list reports the objects that exist now, those that are new or changed since
// the last list, and those that were deleted in between.
func (w *watcher) list(ctx context.Context) (done bool, err error) {
	changes, version, err := w.all(ctx)
	if err != nil {
		if w.seen > 0 {
			err = &passingError{err}
		}
		return false, err
	}
	now := make(map[string]bool, len(changes))
	for i, c := range changes {
		c.More = i+1 < len(changes)
		k := key(c.Object)
		now[k] = true
		if before, known := w.known[k]; known {
			if before.Object.ResourceVersion() == c.Object.ResourceVersion() {
				continue
			}
			c.Type = Modified
		}
		if !w.tell(c) {
			return true, nil
		}
	}
	for k, c := range w.known {
		if c.Type = Deleted; !now[k] && !w.tell(c) {
			return true, nil
		}
	}
	w.version, w.seen = version, w.seen+1
	return len(changes) == 0 && w.empty != nil && !w.empty(), nil
}

// all returns every object there is now, as ADDED.
func (w *watcher) all(ctx context.Context) ([]Change, string, error) {
	if w.accept != asTable {
		objects, version, err := w.c.List(ctx, w.o)
		changes := make([]Change, len(objects))
		for i, o := range objects {
			changes[i] = Change{Type: Added, Object: o}
		}
		return changes, version, err
	}
	t, err := w.c.Table(ctx, w.o)
	if err != nil {
		return nil, "", err
	}
	w.columns = t.ColumnDefinitions
	changes := make([]Change, len(t.Rows))
	for i := range t.Rows {
		if changes[i], err = w.row(Added, t, &t.Rows[i]); err != nil {
			return nil, "", w.c.strange(request{about: Ref{Kind: w.o.Kind}}, "a row of its table holds no object")
		}
	}
	return changes, t.ResourceVersion, nil
}
