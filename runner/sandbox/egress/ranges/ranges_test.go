package ranges

import (
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfTheInternetArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "::ffff:8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "::": false, "fe80::1": false, "fd00::1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "198.18.0.1": false,
		"168.63.129.16": false, "192.0.2.1": false, "192.88.99.1": false, "203.0.113.9": false, "::7f00:1": false, "fec0::1": false, "2001:db8::1": false, "3fff::1": false,
		"4000::1": false, "100.100.100.200": false, "fd00:ec2::254": false, "ff02::1": false, "64:ff9b:1::1": false, "2606:4700::1111%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
