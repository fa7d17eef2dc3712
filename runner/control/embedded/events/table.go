package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// table prints events as a cluster does.
type table struct {
	now func() time.Time
}

var columns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string", Description: "When it happened last."},
	{Name: "Type", Type: "string", Description: "Normal or Warning."},
	{Name: "Reason", Type: "string", Description: "What happened, in one word."},
	{Name: "Object", Type: "string", Description: "What it happened to."},
	{Name: "Source", Type: "string", Priority: 1, Description: "Who says so."},
	{Name: "Message", Type: "string", Description: "What happened."},
	{Name: "First Seen", Type: "string", Priority: 1, Description: "When it happened first."},
	{Name: "Count", Type: "integer", Priority: 1, Description: "How often it happened."},
	{Name: "Name", Type: "string", Format: "name", Priority: 1, Description: "The name of the event."},
}

// ConvertToTable implements rest.TableConvertor.
func (c table) ConvertToTable(_ context.Context, object, o runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{}
	if list, err := meta.ListAccessor(object); err == nil {
		t.ResourceVersion = list.GetResourceVersion()
	}
	if options, ok := o.(*metav1.TableOptions); !ok || !options.NoHeaders {
		t.ColumnDefinitions = columns
	}
	if _, ok := object.(*corev1.EventList); !ok {
		return t, c.add(t, object)
	}
	return t, meta.EachListItem(object, func(item runtime.Object) error { return c.add(t, item) })
}

func (c table) add(t *metav1.Table, object runtime.Object) error {
	e, ok := object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("print a %T as an event", object)
	}
	t.Rows = append(t.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: e}, Cells: []any{
		c.since(e.LastTimestamp), e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
		e.Source.Component, strings.TrimSpace(e.Message), c.since(e.FirstTimestamp), int64(e.Count), e.Name,
	}})
	return nil
}

func (c table) since(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(c.now().Sub(t.Time))
}
