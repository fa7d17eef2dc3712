package egress

import (
	"context"
	"net"
	"net/netip"
	"strings"
)

// Resolver looks up the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// hostResolver asks as the host does, for exactly the name: a search list of the
// host must not turn an allowed name into another one. Names of one part are
// looked up with it, since nothing else finds them.
type hostResolver struct{}

// LookupNetIP implements Resolver.
func (hostResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}
