package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

// runGetObjects lists what a control plane keeps, and starts it where that is
// the local one.
func (o *getOptions) runGetObjects(ctx context.Context, args []string) error {
	w, err := o.wanted(args)
	if err != nil {
		return err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return o.get(ctx, c, w)
}

// runGetDeclared shows the objects that manifests name.
func (o *getOptions) runGetDeclared(ctx context.Context) error {
	w, err := o.declared(ctx, o.files, o.recursive)
	if err != nil {
		return err
	}
	if o.watch && len(w.refs) != 1 {
		return usagef("-w follows one kind, or one object")
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return o.get(ctx, c, w)
}

func (o *getOptions) wanted(args []string) (*wanted, error) {
	w := wantedEvents(args, o.namespace)
	if w == nil {
		var err error
		if w, err = parseWanted(args, o.namespace); err != nil {
			return nil, err
		}
	}
	selects := o.selector != "" || o.fields != ""
	switch {
	case len(w.refs) > 0 && selects:
		return nil, usagef("names and selectors exclude each other")
	case len(w.refs) > 0 && o.all:
		return nil, usagef("a name means an object of one namespace: leave -A out")
	case o.all && o.namespace != "":
		return nil, usagef("-A and -n exclude each other")
	case o.watch && (len(w.kinds) > 1 || len(w.refs) > 1):
		return nil, usagef("-w follows one kind, or one object")
	case o.watch && o.sortBy != "":
		return nil, usagef("-w shows changes in their own order: leave --sort-by out")
	}
	if _, err := parseSelector(o.selector); err != nil {
		return nil, err
	}
	return w, nil
}

func (o *getOptions) get(ctx context.Context, c *client.Client, w *wanted) error {
	switch {
	case o.watch:
		return o.follow(ctx, c, w)
	case o.output.structured() || o.output.kind == display.FormatName:
		return o.objects(ctx, c, w)
	}
	return o.tables(ctx, c, w)
}

func (o *getOptions) listOptions(kind string) client.ListOptions {
	return client.ListOptions{Kind: kind, Namespace: o.namespace, AllNamespaces: o.all, Labels: o.selector, Fields: o.fields, Objects: o.sortBy != ""}
}

// objects shows whole objects.
func (o *getOptions) objects(ctx context.Context, c *client.Client, w *wanted) error {
	all, failed, err := o.fetch(ctx, c, w)
	if err != nil {
		return err
	}
	if all, err = o.sorted(all); err != nil {
		return err
	}
	if err := o.show(all, w.single && len(all) == 1); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// fetch gets what is wanted; of objects that are named, those that cannot be got
// are errors for the end.
func (o *getOptions) fetch(ctx context.Context, c *client.Client, w *wanted) (all []client.Object, failed []error, err error) {
	for _, ref := range w.refs {
		x, err := c.Get(ctx, ref)
		switch {
		case client.Missing(err) && o.missingOK:
		case client.Missing(err) && !w.single:
			failed = append(failed, err)
		case err != nil:
			return nil, nil, err
		default:
			all = append(all, x.WithoutManagedFields())
		}
	}
	if len(w.refs) > 0 {
		return all, failed, nil
	}
	for _, kind := range w.kinds {
		objects, _, err := c.List(ctx, o.listOptions(kind))
		if err != nil {
			return nil, nil, err
		}
		for _, x := range objects {
			all = append(all, x.WithoutManagedFields())
		}
	}
	return all, nil, nil
}

func (o *getOptions) show(all []client.Object, single bool) error {
	out := o.app.stdout()
	if o.output.kind == display.FormatName {
		var b strings.Builder
		for _, x := range all {
			b.WriteString(x.Ref().String() + "\n")
		}
		if b.Len() == 0 {
			return nil
		}
		return display.Text(out, b.String())
	}
	if single {
		return o.output.write(out, all[0])
	}
	if all == nil {
		all = []client.Object{}
	}
	return o.output.write(out, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": all})
}

// sorted orders by --sort-by.
func (o *getOptions) sorted(all []client.Object) ([]client.Object, error) {
	if o.sortBy == "" {
		return all, nil
	}
	keys, err := o.keys(len(all), func(i int) client.Object { return all[i] })
	if err != nil {
		return nil, err
	}
	return reorder(all, keys), nil
}

// keys are what --sort-by finds in objects.
func (o *getOptions) keys(n int, of func(int) client.Object) ([]any, error) {
	path, err := parsePath(o.sortBy)
	if err != nil {
		return nil, usagef("--sort-by: %w", err)
	}
	keys, some := make([]any, n), n == 0
	for i := range n {
		found, err := path.FindResults(map[string]any(of(i)))
		if err != nil {
			return nil, usagef("--sort-by: %w", err)
		}
		if len(found) > 0 && len(found[0]) > 0 {
			keys[i], some = found[0][0].Interface(), true
		}
	}
	if !some {
		return nil, usagef("--sort-by %s: no object has this field", o.sortBy)
	}
	return keys, nil
}

// reorder sorts by keys: numbers by value, all else as text, nothing first.
func reorder[T any](all []T, keys []any) []T {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareKeys(keys[a], keys[b]) })
	out := make([]T, len(all))
	for i, at := range order {
		out[i] = all[at]
	}
	return out
}

func compareKeys(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(boolInt(a != nil), boolInt(b != nil))
	}
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// tables shows one table a kind.
func (o *getOptions) tables(ctx context.Context, c *client.Client, w *wanted) error {
	var failed []error
	written := 0
	for _, kind := range w.kinds {
		t, missing, err := o.table(ctx, c, kind, w)
		if err != nil {
			return err
		}
		failed = append(failed, missing...)
		if len(t.Rows) == 0 {
			continue
		}
		shown, err := o.shape(t, kind, len(w.kinds) > 1)
		if err != nil {
			return err
		}
		out := o.app.stdout()
		if written > 0 {
			if err := display.Text(out, "\n"); err != nil {
				return err
			}
		}
		if err := shown.Write(out); err != nil {
			return fmt.Errorf("write the list: %w", err)
		}
		written++
	}
	if written == 0 && len(failed) == 0 && len(w.refs) == 0 {
		display.Notice(o.app.stderr(), o.nothing(c, w))
	}
	return errors.Join(failed...)
}

func (o *getOptions) nothing(c *client.Client, w *wanted) string {
	names := make([]string, len(w.kinds))
	for i, kind := range w.kinds {
		names[i] = plural(kind)
	}
	text := "no " + strings.Join(names, ", ")
	if o.all {
		return text + " in any namespace"
	}
	return text + " in namespace " + c.Namespace(o.namespace)
}

func plural(kind string) string {
	if kind == client.KindEvent {
		return "events"
	}
	if k, ok := crds.Kind(kind); ok {
		return k.Plural
	}
	return strings.ToLower(kind)
}

func (o *getOptions) table(ctx context.Context, c *client.Client, kind string, w *wanted) (whole *metav1.Table, failed []error, err error) {
	if len(w.refs) == 0 {
		whole, err = c.Table(ctx, o.listOptions(kind))
		return whole, nil, err
	}
	whole = &metav1.Table{}
	for _, ref := range w.refs {
		if ref.Kind != kind {
			continue
		}
		t, err := c.TableOf(ctx, ref)
		switch {
		case client.Missing(err) && o.missingOK:
		case client.Missing(err):
			failed = append(failed, err)
		case err != nil:
			return nil, nil, err
		default:
			whole.ColumnDefinitions, whole.Rows = t.ColumnDefinitions, append(whole.Rows, t.Rows...)
		}
	}
	return whole, failed, nil
}

// shape makes a table for people of the one of the server.
func (o *getOptions) shape(t *metav1.Table, kind string, several bool) (*display.ObjectTable, error) {
	shown := o.emptyTable()
	shown.Columns = t.ColumnDefinitions
	objects := make([]client.Object, len(t.Rows))
	for i := range t.Rows {
		x, err := client.RowObject(&t.Rows[i])
		if err != nil {
			return nil, fmt.Errorf("%s: read a row: %w", plural(kind), err)
		}
		objects[i] = x
		row := displayRow(t.Rows[i].Cells, x)
		if several {
			row.Prefix = strings.TrimSuffix(client.Ref{Kind: kind}.String(), "/") + "/"
		}
		shown.Rows = append(shown.Rows, row)
	}
	if o.sortBy == "" {
		return shown, nil
	}
	keys, err := o.keys(len(objects), func(i int) client.Object { return objects[i] })
	if err != nil {
		return nil, err
	}
	shown.Rows = reorder(shown.Rows, keys)
	return shown, nil
}

func (o *getOptions) emptyTable() *display.ObjectTable {
	return &display.ObjectTable{Wide: o.output.kind == display.FormatWide, NoHeaders: o.noHeaders, Namespaces: o.all, Labels: o.showLabels}
}

func displayRow(cells []any, x client.Object) display.Row {
	return display.Row{Cells: cells, Namespace: x.Namespace(), Labels: x.Labels()}
}

// follow shows what there is, and then each change, until it is stopped.
func (o *getOptions) follow(ctx context.Context, c *client.Client, w *wanted) error {
	options := client.WatchOptions{ListOptions: o.listOptions(w.kinds[0])}
	if w.single {
		options.Fields = "metadata.name=" + w.refs[0].Name
	}
	structured := o.output.structured() || o.output.kind == display.FormatName
	options.Table = !structured
	shown := o.emptyTable()
	var wrote error
	err := c.Watch(ctx, options, func(x client.Change) bool {
		if structured {
			wrote = o.show([]client.Object{x.Object.WithoutManagedFields()}, true)
			return wrote == nil
		}
		shown.Columns, shown.Rows = x.Columns, append(shown.Rows, displayRow(x.Cells, x.Object))
		if x.More {
			return true
		}
		wrote = shown.Write(o.app.stdout())
		shown.NoHeaders, shown.Rows = true, nil
		return wrote == nil
	})
	return errors.Join(err, wrote)
}
