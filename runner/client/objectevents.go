package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/crds"
)

// KindEvent is the kind of core events: what happened to objects. The server
// writes them, so they can be read only; they are not a kind of this API group.
const KindEvent = "Event"

const (
	eventsVersion = "v1"
	eventsPlural  = "events"
)

// ObjectEvent is something that happened to an object, once or several times.
type ObjectEvent struct {
	// Type is Normal or Warning.
	Type            string
	Reason, Message string
	// Source is the component that reports it.
	Source      string
	First, Last time.Time
	Count       int64
}

// ObjectEvents returns what happened to an object lately, the latest at the end.
//
//	events   error   the server
//	nil      nil     knows no events
//	empty    nil     knows of none
//	nil      any     cannot be asked, or refuses
func (c *Client) ObjectEvents(ctx context.Context, o Object) ([]ObjectEvent, error) {
	// As kubectl does: an object that is created again under the same name has
	// another uid.
	selector := []string{"involvedObject.name=" + escaped(o.Name()), "involvedObject.kind=" + escaped(o.Kind())}
	if uid := o.Text("metadata", "uid"); uid != "" {
		selector = append(selector, "involvedObject.uid="+escaped(uid))
	}
	found, _, err := c.List(ctx, ListOptions{Kind: KindEvent, Namespace: o.Namespace(), Fields: strings.Join(selector, ",")})
	if status, ok := errors.AsType[*StatusError](err); ok && status.Code == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	events := make([]ObjectEvent, len(found))
	for i, e := range found {
		events[i] = objectEvent(e)
	}
	return events, nil
}

// escaped keeps a value of a selector one value.
func escaped(value string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`).Replace(value)
}

// objectEvent reads an event of either API: those written by the newer API have
// a time and a series where the older ones have two times and a count.
func objectEvent(e Object) ObjectEvent {
	return ObjectEvent{
		Type: e.Text("type"), Reason: e.Text("reason"), Message: strings.TrimSpace(e.Text("message")),
		Source: cmp.Or(e.Text("source", "component"), e.Text("reportingComponent")),
		First:  firstTime(e, []string{"firstTimestamp"}, []string{"eventTime"}, []string{"metadata", "creationTimestamp"}),
		Last:   firstTime(e, []string{"series", "lastObservedTime"}, []string{"lastTimestamp"}, []string{"eventTime"}, []string{"metadata", "creationTimestamp"}),
		Count:  cmp.Or(e.Number("series", "count"), e.Number("count"), 1),
	}
}

// firstTime is the first of some fields that holds a time.
func firstTime(o Object, paths ...[]string) time.Time {
	for _, path := range paths {
		if t, err := time.Parse(time.RFC3339, o.Text(path...)); err == nil {
			return t
		}
	}
	return time.Time{}
}

// pathOf is where an object is, or with an empty name those of a kind.
func pathOf(kind, namespace, name string) (string, error) {
	if kind == KindEvent {
		return join("/api/"+eventsVersion, namespace, eventsPlural, name), nil
	}
	k, err := kindOf(kind)
	if err != nil {
		return "", err
	}
	return resourcePath(k, namespace, name), nil
}

// versionOf is the API version in which objects of a kind are spoken of.
func versionOf(kind string) string {
	if kind == KindEvent {
		return eventsVersion
	}
	return crds.GroupVersion
}
