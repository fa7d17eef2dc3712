package container

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	containersapi "github.com/containerd/containerd/api/services/containers/v1"
	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	eventsapi "github.com/containerd/containerd/api/services/events/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	introspectionapi "github.com/containerd/containerd/api/services/introspection/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	tasksapi "github.com/containerd/containerd/api/services/tasks/v1"
	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"github.com/containerd/containerd/v2/core/content"
	contentproxy "github.com/containerd/containerd/v2/core/content/proxy"
	"github.com/containerd/containerd/v2/core/diff"
	diffproxy "github.com/containerd/containerd/v2/core/diff/proxy"
	"github.com/containerd/containerd/v2/core/leases"
	leasesproxy "github.com/containerd/containerd/v2/core/leases/proxy"
	"github.com/containerd/containerd/v2/core/snapshots"
	snapshotsproxy "github.com/containerd/containerd/v2/core/snapshots/proxy"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// daemon is a connection to a containerd with the services that are needed.
//
// containerd's package client wraps the same services. It would cost every
// start of agentctl a millisecond for features that are not used here
// (archives, transfers, checkpoints). And it would cost every container some
// ten calls more: a lease for each, and reads of what the caller has just
// written.
type daemon struct {
	conn       *grpc.ClientConn
	containers containersapi.ContainersClient
	tasks      tasksapi.TasksClient
	images     imagesapi.ImagesClient
	events     eventsapi.EventsClient
	leases     leases.Manager
	content    content.Store
	diff       diff.Applier
	snapshots  snapshots.Snapshotter
	version    versionapi.VersionClient
	plugins    introspectionapi.IntrospectionClient
}

// Bounds of the connection.
const (
	maxMessage  = 16 << 20 // containerd's own
	connectTime = 10 * time.Second
	reconnect   = 3 * time.Second
)

// dial prepares a connection; it is made by the first call.
func dial(address string) (*daemon, error) {
	conn, err := grpc.NewClient("passthrough:///containerd",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", address)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnect},
			MinConnectTimeout: connectTime,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}
	d := &daemon{
		conn: conn, containers: containersapi.NewContainersClient(conn), tasks: tasksapi.NewTasksClient(conn),
		images: imagesapi.NewImagesClient(conn), events: eventsapi.NewEventsClient(conn),
		leases: leasesproxy.NewLeaseManager(leasesapi.NewLeasesClient(conn)), content: contentproxy.NewContentStore(conn),
		version: versionapi.NewVersionClient(conn), plugins: introspectionapi.NewIntrospectionClient(conn),
	}
	applier, ok := diffproxy.NewDiffApplier(diffapi.NewDiffClient(conn)).(diff.Applier)
	if !ok {
		return nil, fmt.Errorf("containerd's client applies no layers")
	}
	d.diff = applier
	return d, nil
}

// revive makes gRPC reconnect a broken connection now: otherwise gRPC would
// wait, and fail every call until then, though the daemon may be back.
func (d *daemon) revive(ctx context.Context, address string) error {
	if d.conn.GetState() != connectivity.TransientFailure {
		return nil
	}
	if err := knock(ctx, address); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	d.conn.ResetConnectBackoff()
	d.conn.WaitForStateChange(ctx, connectivity.TransientFailure)
	return nil
}

// use picks the snapshotter.
func (d *daemon) use(snapshotter string) {
	d.snapshots = snapshotsproxy.NewSnapshotter(snapshotsapi.NewSnapshotsClient(d.conn), snapshotter)
}

// ask returns which daemon listens, and which snapshotters it has.
func (d *daemon) ask(ctx context.Context) (version, revision string, snapshotters []string, err error) {
	v, err := d.version.Version(ctx, &emptypb.Empty{})
	if err != nil {
		return "", "", nil, err
	}
	plugins, err := d.plugins.Plugins(ctx, &introspectionapi.PluginsRequest{Filters: []string{"type==io.containerd.snapshotter.v1"}})
	if err != nil {
		return "", "", nil, err
	}
	for _, p := range plugins.GetPlugins() {
		if p.GetInitErr() == nil {
			snapshotters = append(snapshotters, p.GetID())
		}
	}
	return v.GetVersion(), v.GetRevision(), snapshotters, nil
}

// lease keeps what is fetched in its context from being collected.
func (d *daemon) lease(ctx context.Context, most time.Duration) (context.Context, func(context.Context) error, error) {
	l, err := d.leases.Create(ctx, leases.WithRandomID(), leases.WithExpiration(most))
	if err != nil {
		return ctx, nil, err
	}
	return leases.WithLease(ctx, l.ID), func(ctx context.Context) error { return d.leases.Delete(ctx, l) }, nil
}

// record writes a container down, with its spec.
func (d *daemon) record(ctx context.Context, c *containersapi.Container, spec *specs.Spec) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	c.Spec = &anypb.Any{TypeUrl: specType + "Spec", Value: text}
	_, err = d.containers.Create(ctx, &containersapi.CreateContainerRequest{Container: c})
	return errgrpc.ToNative(err)
}

// specType is the prefix of the names of types in a spec.
const specType = "types.containerd.io/opencontainers/runtime-spec/1/"

// forget removes a container's record and its snapshot. It ignores those that
// do not exist.
func (d *daemon) forget(ctx context.Context, id string) error {
	if err := d.snapshots.Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	_, err := d.containers.Delete(ctx, &containersapi.DeleteContainerRequest{ID: id})
	if err = errgrpc.ToNative(err); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// unknownRuntime reports whether an error means that a shim is not installed.
func unknownRuntime(err error) bool {
	return errdefs.IsNotFound(err) || strings.Contains(err.Error(), "not installed") || strings.Contains(err.Error(), "invalid runtime name")
}
