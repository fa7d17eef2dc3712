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

// hostResolver resolves as the host does, but only the exact name: a search
// list of the host must not turn an allowed name into another one. Names
// without a dot are resolved with the search list, because they need it.
type hostResolver struct{}

// LookupNetIP implements Resolver.
func (hostResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}
