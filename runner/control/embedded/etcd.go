package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// memberName is the name of the one member.
	memberName = "agentd"
	// advertised is set because etcd requires a host and a port. Nothing listens
	// there and nothing connects to it: there is one member.
	advertised = "http://127.0.0.1:1"
	// etcdPatience is how long the database may take to get ready.
	etcdPatience = time.Minute
	// defragmentFrom is how many megabytes a start has to gain by packing the file.
	defragmentFrom = 64
	// segmentSize is the size of a file of the write-ahead log.
	segmentSize = 16 << 20
	// databaseQuota is the size above which the database accepts no writes.
	databaseQuota = 2 << 30
)

// database is etcd in this process. It has no users: a process that can connect
// to its socket bypasses all authorisation. So the socket is in a folder that
// only the user of this process may enter, and there is no port.
type database struct {
	etcd   *embed.Etcd
	socket string
	path   string // of its file

	mu       sync.Mutex
	reserved int64 // bytes of the disk that the file has at least
}

// startDatabase opens the database of the folder, or creates it. log is for the
// output of the library.
func startDatabase(ctx context.Context, f *folder, log *slog.Logger) (*database, error) {
	dir := f.path(etcdDir)
	zl := zapLogger(log)
	if err := prepare(zl, dir); err != nil {
		return nil, damaged(dir, err)
	}
	c := embed.NewConfig()
	c.Name, c.Dir = memberName, dir
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: f.path(clientSocket)}}
	// No peers, no listener for them. One for unix:///path would be worse than a
	// port: etcd drops the path and listens on an abstract socket, which belongs
	// to no folder, so every user of the machine may connect.
	c.ListenPeerUrls = nil
	placeholder, err := url.Parse(advertised)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = []url.URL{*placeholder}, []url.URL{*placeholder}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// One member elects itself; the defaults would make it wait a second for others.
	c.TickMs, c.ElectionMs = 10, 50
	c.UnsafeNoFsync = false // what is acknowledged is kept
	c.QuotaBackendBytes = databaseQuota
	c.BootstrapDefragThresholdMegabytes = defragmentFrom
	// The defaults keep the last 10,000 writes in memory for members that lag.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 2000, 100
	// A segment of the log is allocated as a whole: the defaults take 64 MB of the
	// disk before the first object, and up to 320 MB later.
	wal.SegmentSizeBytes = segmentSize
	c.MaxWalFiles, c.MaxSnapFiles = 2, 2
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zl)
	e, err := startEtcd(c)
	if err != nil {
		return nil, damaged(dir, err)
	}
	d := &database{etcd: e, socket: f.path(clientSocket), path: filepath.Join(dir, "member", "snap", "db")}
	if err := d.ready(ctx); err != nil {
		e.Server.HardStop() // otherwise Close waits for it to get ready
		d.close()
		return nil, fmt.Errorf("start the database in %s: %w", dir, err)
	}
	return d, nil
}

// startEtcd turns the panics by which etcd reports a damaged file into errors.
func startEtcd(c *embed.Config) (e *embed.Etcd, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped: beyond its end is a fault
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return embed.StartEtcd(c)
}

func (d *database) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	select {
	case <-d.etcd.Server.ReadyNotify():
	case err := <-d.etcd.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	// The mode of the folder already protects the socket; the socket has the
	// same mode for readers of a listing.
	return os.Chmod(d.socket, 0o600)
}

// reserve has the file of the database own more of the disk than it uses, in
// steps.
func (d *database) reserve() error {
	size := d.etcd.Server.Backend().Size()
	d.mu.Lock()
	defer d.mu.Unlock()
	if size+databaseReserve <= d.reserved {
		return nil
	}
	if err := reserveSpace(d.path, size+2*databaseReserve); err != nil {
		return err
	}
	d.reserved = size + 2*databaseReserve
	return nil
}

// endpoint is the address for clients in this process.
func (d *database) endpoint() string { return "unix://" + d.socket }

// failed yields the error that ended the database without being asked.
func (d *database) failed() <-chan error { return d.etcd.Err() }

// stopped is closed when the database has stopped, asked or not.
func (d *database) stopped() <-chan struct{} { return d.etcd.Server.StopNotify() }

func (d *database) close() { d.etcd.Close() }

func damaged(dir string, err error) error {
	return hinted(fmt.Errorf("open the database in %s: %w", dir, err), fmt.Sprintf(
		"put a copy of the folder back; or begin with an empty control plane: mv %s %s.damaged, then apply the manifests again. The journals of runs are elsewhere and stay", dir, dir))
}
