package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

// numericHost reads an IPv4 address as inet_aton(3) does: up to four numbers, decimal,
// octal behind 0 or hexadecimal behind 0x, of which the last fills the bytes that are left.
func numericHost(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || strings.ContainsAny(part, "_bBoO") && !strings.HasPrefix(strings.ToLower(part), "0x") || strings.Contains(part, "_") {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			if n >= 1<<(8*(5-len(parts))) {
				return netip.Addr{}, false
			}
			value = value<<(8*(5-len(parts))) | n
			break
		}
		if n > 255 {
			return netip.Addr{}, false
		}
		value = value<<8 | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
