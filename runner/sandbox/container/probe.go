package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// Info is what a containerd reports about itself.
type Info struct {
	Address  string
	Version  string
	Revision string
	// Snapshotter is overlayfs, or native where overlayfs is not available.
	// native copies every image for every container.
	Snapshotter string
}

// probeTime bounds each request of Probe. A socket of another program costs
// this time; a containerd on a busy machine may well take a second.
const probeTime = 5 * time.Second

// The snapshotters, the better first.
const (
	overlayfs = "overlayfs"
	native    = "native"
)

// Probe checks whether a usable containerd runs here, and which version. An
// error has the reason IsolationUnavailable and names the socket that was tried
// and how to install containerd. An error is not kept: the next call probes
// again. A result is kept.
//
// A client has no error for a daemon that is not there: it connects when it is
// used, and then waits. So the socket is tried first.
func (r *Runtime) Probe(ctx context.Context) (Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return Info{}, errClosed
	}
	if r.daemon != nil {
		return r.info, nil
	}
	ctx = r.context(ctx)
	if err := knock(ctx, r.opts.Address); err != nil {
		return Info{}, err
	}
	d, err := dial(r.opts.Address)
	if err != nil {
		return Info{}, unavailable(err, "no containerd answered at %s (%v)", r.opts.Address, err)
	}
	info, err := ask(ctx, d, r.opts.Address)
	if err != nil {
		return Info{}, errors.Join(err, d.conn.Close())
	}
	d.use(info.Snapshotter)
	if info.Snapshotter == native {
		r.opts.Log.Warn("containerd has no overlayfs: every container copies its image", "address", info.Address)
	}
	r.daemon, r.info = d, info
	return info, nil
}

// Require is Probe with error texts for a tool that needs a container.
func (r *Runtime) Require(ctx context.Context, tool string) error {
	_, err := r.Probe(ctx)
	bad, ok := errors.AsType[*reason.Error](err)
	if !ok {
		return err
	}
	return &reason.Error{Reason: bad.Reason, Hint: bad.Hint, Err: fmt.Errorf("tool %q needs isolation Container but %w", tool, bad.Err)}
}

// unavailableError carries the cause next to its own text.
type unavailableError struct {
	text  string
	cause error
}

func (e *unavailableError) Error() string { return e.text }
func (e *unavailableError) Unwrap() error { return e.cause }

// unavailable is the error for a containerd that cannot be used.
func unavailable(cause error, format string, args ...any) *reason.Error {
	return (&reason.Error{Reason: reason.IsolationUnavailable, Err: &unavailableError{fmt.Sprintf(format, args...), cause}}).
		WithHint("start containerd, name its socket by --containerd-address or %s; a tool with source.plugin or source.exec needs none", AddressEnv)
}

// knock connects to the socket and returns an error that explains why it cannot
// be used.
func knock(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", address)
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, fs.ErrNotExist):
		return unavailable(err, "no containerd answered at %s (no such file)", address)
	case errors.Is(err, fs.ErrPermission):
		return unavailable(err, "the socket %s %s", address, refusal(address)).
			WithHint("let uid %d into the socket's group (gid in containerd's config.toml, section [grpc]), or run agentctl as its owner; a tool with source.plugin or source.exec needs none", os.Geteuid())
	case errors.Is(err, syscall.ECONNREFUSED):
		return unavailable(err, "no containerd answered at %s (nobody listens there)", address)
	case errors.Is(err, syscall.EPROTOTYPE) || errors.Is(err, syscall.ENOTSOCK):
		return unavailable(err, "%s is not a containerd endpoint", address)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return unavailable(err, "no containerd answered at %s (%v)", address, err)
}

// refusal names the owner of the socket and the user of this process.
func refusal(address string) string {
	us := fmt.Sprintf("lets uid %d not in", os.Geteuid())
	info, err := os.Stat(address)
	if err != nil {
		return us // the folder cannot be read
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return us
	}
	owner, group := strconv.FormatUint(uint64(st.Uid), 10), strconv.FormatUint(uint64(st.Gid), 10)
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return fmt.Sprintf("belongs to %s:%s with mode %04o and %s", owner, group, info.Mode().Perm(), us)
}

// ask sends a request to the daemon, to check that the listener at the socket
// is containerd.
func ask(ctx context.Context, d *daemon, address string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	version, revision, usable, err := d.ask(ctx)
	if err != nil {
		return Info{}, unavailable(err, "what listens at %s is not a containerd endpoint (%v)", address, err)
	}
	info := Info{Address: address, Version: version, Revision: revision}
	for _, s := range []string{overlayfs, native} {
		if slices.Contains(usable, s) {
			info.Snapshotter = s
			return info, nil
		}
	}
	return Info{}, unavailable(nil, "containerd at %s has neither the snapshotter overlayfs nor native, only %q", address, usable)
}
