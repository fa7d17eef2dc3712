package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/sandbox/egress/ranges"
)

// deniedError is the error for a target that may not be reached. The tool reads
// its text; rule goes to the record.
type deniedError struct {
	text, rule string
}

func (e *deniedError) Error() string { return e.text }

// denied refuses a target that no entry allows.
func (p *Proxy) denied(t Target) error {
	const rule = "not in spec.network.allow"
	return &deniedError{fmt.Sprintf("NetworkDenied: %s %s of %s", t, rule, names(p.opts.Tools)), rule}
}

// special refuses an address that is not public.
func (p *Proxy) special(t Target, to netip.AddrPort, kind string) error {
	text := fmt.Sprintf("NetworkDenied: %s is %s", t, kind)
	if t.Name != "" {
		text = fmt.Sprintf("NetworkDenied: %s resolves to %s, %s", t, to.Addr().Unmap(), kind)
	}
	if ranges.Never(to.Addr().Unmap()) == "" {
		text += fmt.Sprintf("; to reach it, list %s in spec.network.allow of %s", Target{Addr: to.Addr().Unmap(), Port: to.Port()}, names(p.opts.Tools))
	}
	return &deniedError{text, fmt.Sprintf("%s, %s", to.Addr().Unmap(), kind)}
}

// dial looks the target up once and connects to the first address that answers
// and may be dialled. The error is a *deniedError when none may be.
func (p *Proxy) dial(ctx context.Context, t Target) (net.Conn, netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.Dial)
	defer cancel()
	addrs, err := p.lookup(ctx, t)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	var refused, failed error
	for i, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), t.Port)
		if kind, ok := p.allow.Dials(to); !ok {
			refused = p.special(t, to, kind)
			continue
		}
		conn, err := p.connect(ctx, to, len(addrs)-i)
		if err == nil {
			return conn, to, nil
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return nil, netip.AddrPort{}, failed
	}
	return nil, netip.AddrPort{}, refused
}

// maxAddresses bounds how many addresses of one name are tried.
const maxAddresses = 8

func (p *Proxy) lookup(ctx context.Context, t Target) ([]netip.Addr, error) {
	if t.Name == "" {
		return []netip.Addr{t.Addr}, nil
	}
	addrs, err := p.opts.Resolver.LookupNetIP(ctx, "ip", t.Name)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", t.Name, plainLookup(err))
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", t.Name)
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// plainLookup leaves out the name server, which is the host's own business.
func plainLookup(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsTimeout {
			return errors.New("the name server did not answer in time")
		}
		return errors.New(dns.Err)
	}
	return err
}

// connect dials one address and shares the time left among those still to be tried.
func (p *Proxy) connect(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	dial := p.opts.Dial
	if dial == nil {
		dial = p.dialHost
	}
	conn, err := dial(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, plainDial(err))
	}
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); ok && remote.AddrPort().Addr().Unmap() != to.Addr() {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: got %s", to, remote)
	}
	return conn, nil
}

// plainDial removes what the error of connect repeats.
func plainDial(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Timeout() {
			return errors.New("no answer in time")
		}
		if call, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return call.Err
		}
		return op.Err
	}
	return err
}

// dialHost connects from the host's own network. The kernel is asked for the
// address that was checked and for no other: the last look is at what the socket
// is about to be connected to.
func (p *Proxy) dialHost(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		got, err := netip.ParseAddrPort(address)
		if err != nil || netip.AddrPortFrom(got.Addr().Unmap(), got.Port()) != to {
			return fmt.Errorf("the socket would go to %s", address)
		}
		if kind, ok := p.allow.Dials(to); !ok {
			return fmt.Errorf("%s is %s", to, kind)
		}
		return nil
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

// record returns the first fields of the record of a connection to the target.
func (p *Proxy) record(t Target) event.EgressConnection {
	return event.EgressConnection{Tools: p.opts.Tools, Host: t.Host(), Port: int(t.Port)}
}
