package events

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// Install serves the events of a store as a core API without any other
// resource. They are read only: there is no route for writes.
func Install(server *genericapiserver.GenericAPIServer, s *Store) error {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	if err := scheme.SetVersionPriority(corev1.SchemeGroupVersion); err != nil {
		return fmt.Errorf("register events: %w", err)
	}
	if err := scheme.AddFieldLabelConversionFunc(corev1.SchemeGroupVersion.WithKind("Event"), selectable); err != nil {
		return fmt.Errorf("register the fields of events: %w", err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(corev1.GroupName, scheme, runtime.NewParameterCodec(scheme), serializer.NewCodecFactory(scheme))
	group.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version] = map[string]rest.Storage{"events": &storage{s, table{s.o.Now}}}
	if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &group); err != nil {
		return fmt.Errorf("serve the events: %w", err)
	}
	return nil
}

// storage is what the API server asks for events.
type storage struct {
	store *Store
	table
}

var (
	_ rest.Getter             = (*storage)(nil)
	_ rest.Lister             = (*storage)(nil)
	_ rest.Watcher            = (*storage)(nil)
	_ rest.Scoper             = (*storage)(nil)
	_ rest.ShortNamesProvider = (*storage)(nil)
)

// New implements rest.Storage.
func (*storage) New() runtime.Object { return &corev1.Event{} }

// NewList implements rest.Lister.
func (*storage) NewList() runtime.Object { return &corev1.EventList{} }

// Destroy implements rest.Storage. The store is closed by its owner.
func (*storage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*storage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*storage) GetSingularName() string { return "event" }

// ShortNames implements rest.ShortNamesProvider.
func (*storage) ShortNames() []string { return []string{"ev"} }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	namespace := request.NamespaceValue(ctx)
	for _, e := range s.store.all() {
		if e.Name == name && e.Namespace == namespace {
			return copied(e), nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
}

// List implements rest.Lister. There are few enough for one answer, so a limit
// is not kept to; the API allows for that.
func (s *storage) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	s.store.mu.Lock()
	all, version := s.store.list()
	s.store.mu.Unlock()
	if o != nil && o.Continue != "" {
		return nil, apierrors.NewResourceExpired("there is nothing to continue: list the events again")
	}
	if o != nil && o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && o.ResourceVersion != strconv.FormatUint(version, 10) {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("the events of resource version %q are not kept: list those of now", o.ResourceVersion))
	}
	list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}, Items: []corev1.Event{}}
	matches := matcher(ctx, o)
	for _, e := range all {
		if matches(e) {
			list.Items = append(list.Items, *e)
		}
	}
	return list, nil
}

// Watch implements rest.Watcher.
func (s *storage) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	from, err := s.store.start(o)
	if err != nil {
		return nil, err
	}
	w := &watcher{store: s.store, matches: matcher(ctx, o), result: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run(ctx, from) // ends with the request, or with Stop
	return w, nil
}

// start returns what a requested watch begins with: with the existing events if
// the request has no version, as an API server does it.
func (s *Store) start(o *internalversion.ListOptions) (start, error) {
	s.mu.Lock()
	all, now := s.list()
	s.mu.Unlock()
	if o == nil {
		o = &internalversion.ListOptions{}
	}
	asked := uint64(0)
	if o.ResourceVersion != "" {
		var err error
		if asked, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
			return start{}, apierrors.NewBadRequest(fmt.Sprintf("resource version %q is no number of this server", o.ResourceVersion))
		}
	}
	from := start{version: now}
	initial := o.SendInitialEvents
	switch {
	case initial != nil && *initial:
		from.state, from.bookmark = all, o.AllowWatchBookmarks
	case asked != 0:
		from.version = asked
		if _, _, _, err := s.after(asked); err != nil {
			return start{}, err
		}
	case initial == nil:
		from.state = all
	}
	return from, nil
}

// copied is a copy of an event: the API server sets the kind of an object in
// place while it writes it, and the events of the store are shared.
func copied(e *corev1.Event) *corev1.Event {
	c := *e
	return &c
}

// matcher selects the events that a request is about.
func matcher(ctx context.Context, o *internalversion.ListOptions) func(*corev1.Event) bool {
	namespace, label, field := request.NamespaceValue(ctx), labels.Everything(), fields.Everything()
	if o != nil && o.LabelSelector != nil {
		label = o.LabelSelector
	}
	if o != nil && o.FieldSelector != nil {
		field = o.FieldSelector
	}
	return func(e *corev1.Event) bool {
		return (namespace == "" || e.Namespace == namespace) && label.Matches(labels.Set(e.Labels)) && (field.Empty() || field.Matches(fieldsOf(e)))
	}
}

// fieldsOf are the fields of an event by which it can be selected: those of a cluster.
func fieldsOf(e *corev1.Event) fields.Set {
	o := &e.InvolvedObject
	return fields.Set{
		"metadata.name": e.Name, "metadata.namespace": e.Namespace,
		"involvedObject.kind": o.Kind, "involvedObject.namespace": o.Namespace, "involvedObject.name": o.Name,
		"involvedObject.uid": string(o.UID), "involvedObject.apiVersion": o.APIVersion,
		"involvedObject.resourceVersion": o.ResourceVersion, "involvedObject.fieldPath": o.FieldPath,
		"reason": e.Reason, "type": e.Type, "source": e.Source.Component, "reportingComponent": e.ReportingController,
	}
}

// selectable refuses fields that no event has.
func selectable(label, value string) (newLabel, newValue string, err error) {
	if !fieldsOf(&corev1.Event{}).Has(label) {
		return "", "", fmt.Errorf("events cannot be selected by the field %q", label)
	}
	return label, value, nil
}
