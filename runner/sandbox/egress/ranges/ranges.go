// Package ranges knows which addresses are not on the public internet.
package ranges

import (
	"net/netip"
	"sync"
)

// Never names the kind of an address that nothing opens, or is "". On Linux a
// dial to 0.0.0.0 reaches this very host.
func Never(addr netip.Addr) string {
	switch {
	case !addr.IsValid() || addr.Zone() != "":
		return "an address with a zone"
	case addr.IsUnspecified():
		return "the unspecified address"
	case addr.IsMulticast():
		return "a multicast address"
	case addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	}
	return ""
}

// block is a range of addresses that is not part of the public internet.
type block struct {
	prefix, kind string
}

// blocks are the special-purpose registries of IANA, the forms in which an IPv6
// address contains an IPv4 address, and the metadata services with public
// addresses. The first block that matches is named in errors, so the more
// specific ones come first.
var blocks = []block{
	{"169.254.169.254/32", "a metadata service"},
	{"169.254.170.2/32", "a metadata service"},
	{"fd00:ec2::254/128", "a metadata service"},
	{"100.100.100.200/32", "a metadata service"},
	{"168.63.129.16/32", "a metadata service"},
	{"192.0.0.192/32", "a metadata service"},
	{"127.0.0.0/8", "a loopback address"},
	{"::1/128", "a loopback address"},
	{"10.0.0.0/8", "a private address"},
	{"172.16.0.0/12", "a private address"},
	{"192.168.0.0/16", "a private address"},
	{"fc00::/7", "a private address"},
	{"fec0::/10", "a private address"},
	{"169.254.0.0/16", "a link-local address"},
	{"fe80::/10", "a link-local address"},
	{"100.64.0.0/10", "an address shared by a carrier's customers"},
	{"64:ff9b::/96", "an IPv4 address in IPv6 (NAT64)"},
	{"64:ff9b:1::/48", "an IPv4 address in IPv6 (NAT64)"},
	{"2002::/16", "an IPv4 address in IPv6 (6to4)"},
	{"2001::/32", "an IPv4 address in IPv6 (Teredo)"},
	{"::ffff:0:0/96", "an IPv4 address in IPv6"},
	{"::ffff:0:0:0/96", "an IPv4 address in IPv6"},
	{"::/96", "an IPv4 address in IPv6"},
	{"0.0.0.0/8", "a reserved address"},
	{"192.0.0.0/24", "a reserved address"},
	{"192.0.2.0/24", "an address for documentation"},
	{"192.88.99.0/24", "a reserved address"},
	{"198.18.0.0/15", "an address for benchmarks"},
	{"198.51.100.0/24", "an address for documentation"},
	{"203.0.113.0/24", "an address for documentation"},
	{"240.0.0.0/4", "a reserved address"},
	{"2001::/23", "a reserved address"},
	{"2001:db8::/32", "an address for documentation"},
	{"3fff::/20", "an address for documentation"},
}

type parsedBlock struct {
	prefix netip.Prefix
	kind   string
}

var parsedBlocks = sync.OnceValue(func() []parsedBlock {
	list := make([]parsedBlock, 0, len(blocks))
	for _, b := range blocks {
		list = append(list, parsedBlock{netip.MustParsePrefix(b.prefix), b.kind})
	}
	return list
})

// globalIPv6 is all of IPv6 that is given out.
var globalIPv6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3)

// Special names the kind of an address that is not of the public internet, or is "".
func Special(addr netip.Addr) string {
	for _, b := range parsedBlocks() {
		if b.prefix.Contains(addr) {
			return b.kind
		}
	}
	if addr.Is6() && !globalIPv6.Contains(addr) {
		return "a reserved address"
	}
	return ""
}

// Public reports whether an address is one of the internet, also written as an IPv4 address
// in IPv6.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap()
	return Never(addr) == "" && Special(addr) == ""
}
