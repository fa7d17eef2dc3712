package egress

import (
	"net/netip"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/sandbox/egress/ranges"
)

func TestPatternsSayWhatTheyAllow(t *testing.T) {
	for name, c := range map[string]struct {
		reason, pattern, written string
		allowed, refused         []string
	}{
		"name": {
			"a name is itself, in any spelling", "API.GitHub.com.:443", "api.github.com:443",
			[]string{"api.github.com:443", "API.github.COM:443", "api.github.com.:443"},
			[]string{"api.github.com:80", "github.com:443", "x.api.github.com:443", "api.github.com.evil.test:443", "xapi.github.com:443", "140.82.121.6:443"},
		},
		"star": {
			"a star is everything below, and not the thing itself", "*.example.com:443", "*.example.com:443",
			[]string{"a.example.com:443", "a.b.example.com:443", "A.EXAMPLE.COM.:443"},
			[]string{"example.com:443", "aexample.com:443", "a.example.com.evil.test:443", "a.example.com:444", "evil.test:443"},
		},
		"any": {
			"each name, and no address literal", "*:443", "*:443",
			[]string{"example.com:443", "localhost:443"},
			[]string{"93.184.216.34:443", "[2606:4700::1]:443", "example.com:80"},
		},
		"address": {
			"the address, and not the names that lead to it", "192.168.1.7:8080", "192.168.1.7:8080",
			[]string{"192.168.1.7:8080", "[::ffff:192.168.1.7]:8080", "[::ffff:c0a8:107]:8080"},
			[]string{"192.168.1.8:8080", "192.168.1.7:80", "router.local:8080"},
		},
		"address of IPv6": {
			"one spelling for all", "[2606:4700:0:0::1]:443", "[2606:4700::1]:443",
			[]string{"[2606:4700::1]:443", "[2606:4700:0:0:0:0:0:1]:443"},
			[]string{"[2606:4700::2]:443"},
		},
		"network": {
			"the addresses in it", "10.1.0.0/16:443", "10.1.0.0/16:443",
			[]string{"10.1.0.1:443", "10.1.255.255:443"},
			[]string{"10.2.0.1:443", "db.corp:443"},
		},
		"network of IPv6": {
			"the addresses in it", "[fd12:3::/32]:443", "[fd12:3::/32]:443",
			[]string{"[fd12:3::9]:443"},
			[]string{"[fd12:4::9]:443"},
		},
		"punycode":   {"other letters as xn--", "xn--bcher-kva.example:443", "xn--bcher-kva.example:443", []string{"XN--Bcher-KVA.example:443"}, []string{"bucher.example:443"}},
		"underscore": {"not a host name by the book, but in use", "my_db:5432", "my_db:5432", []string{"my_db:5432"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePattern(c.pattern)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if p.String() != c.written {
				t.Errorf("%s: written as %s, want %s", c.reason, p, c.written)
			}
			if again, err := ParsePattern(p.String()); err != nil || again != p {
				t.Errorf("%s reads as %v, %v", p, again, err)
			}
			for _, host := range c.allowed {
				if target, err := ParseTarget(host, 0); err != nil || !p.Match(target) {
					t.Errorf("%s: %s does not allow %s (%v)", c.reason, p, host, err)
				}
			}
			for _, host := range c.refused {
				if target, err := ParseTarget(host, 0); err != nil || p.Match(target) {
					t.Errorf("%s: %s allows %s (%v)", c.reason, p, host, err)
				}
			}
		})
	}
}

func TestBadPatternsAreExplained(t *testing.T) {
	for entry, want := range map[string]string{
		"":                                     "is not host:port",
		"api.github.com":                       "is not host:port",
		":443":                                 "is not host:port",
		"https://api.github.com:443":           "is not host:port",
		"api.github.com:":                      "has no port",
		"api.github.com:0":                     "port between 1 and 65535",
		"api.github.com:65536":                 "port between 1 and 65535",
		"api.github.com:0443":                  "port between 1 and 65535",
		"api.github.com:+443":                  "port between 1 and 65535",
		"api.github.com:https":                 "port between 1 and 65535",
		"api.github.com:443/path":              "port between 1 and 65535",
		"api.github.com:*":                     "opens every port",
		"a*.example.com:443":                   "star",
		"a.*.com:443":                          "star",
		"**.com:443":                           "star",
		"*.:443":                               "has no host",
		"*.10.1:443":                           "star in an address",
		"*.1.2.3:443":                          "star in an address",
		"a..b:443":                             "empty part",
		".a:443":                               "empty part",
		"a b:443":                              `character ' '`,
		"user@a.test:443":                      `character '@'`,
		"a.test\n:443":                         `character '\n'`,
		"bücher.example:443":                   "punycode",
		"-a.test:443":                          "hyphen",
		"127.1:80":                             "neither a name nor an address",
		"0x7f000001:80":                        "neither a name nor an address",
		"2130706433:80":                        "neither a name nor an address",
		"0177.0.0.1:80":                        "neither a name nor an address",
		"0.0.0.0:80":                           "never reached",
		"[::]:80":                              "never reached",
		"224.0.0.1:80":                         "never reached",
		"[ff02::1]:80":                         "never reached",
		"255.255.255.255:80":                   "never reached",
		"::1:80":                               "without brackets",
		"[::1]":                                "has no port",
		"[::1:80":                              "brackets",
		"[127.0.0.1]:80":                       "brackets",
		"[fe80::1%eth0]:80":                    "zone",
		"10.0.0.1/8:80":                        "the network is 10.0.0.0/8",
		"0.0.0.0/0:80":                         "too many addresses",
		"[::/0]:80":                            "too many addresses",
		"fd00::/8:80":                          "without brackets",
		"[10.0.0.0/8]:80":                      "brackets",
		"10.0.0.0/33:80":                       "neither a name nor a network",
		"[::ffff:10.0.0.0/104]:80":             "IPv4-mapped",
		"224.0.0.0/8:80":                       "never reached",
		strings.Repeat("a", 64) + ".test:443":  "more than 63",
		strings.Repeat("a.", 127) + "test:443": "more than 253",
		strings.Repeat("long.", 10) + "test:port": "port between",
	} {
		p, err := ParsePattern(entry)
		if err == nil {
			t.Errorf("%q is read as %s", entry, p)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, want something with %q", entry, err, want)
		}
	}
}

func TestEveryBadEntryIsReported(t *testing.T) {
	_, err := ParseAllow([]string{"a.test:443", "b.test", "c.test:x"})
	if err == nil || !strings.Contains(err.Error(), `"b.test" is not`) || !strings.Contains(err.Error(), `"c.test:x" has no`) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Tools: []string{"x"}, Allow: []string{"b.test"}}); err == nil || !strings.Contains(err.Error(), `tool "x"`) {
		t.Errorf("got %v", err)
	}
}

func TestSpecialAddressesAreDialledOnlyWhenListed(t *testing.T) {
	open, err := ParseAllow([]string{"*:80"})
	if err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]string{
		"127.0.0.1": "loopback", "127.8.8.8": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.0.1": "private", "fd00::1": "private", "fc00::1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "100.64.0.1": "carrier",
		"169.254.169.254": "metadata", "169.254.170.2": "metadata", "fd00:ec2::254": "metadata", "100.100.100.200": "metadata", "168.63.129.16": "metadata", "192.0.0.192": "metadata",
		"64:ff9b::7f00:1": "NAT64", "64:ff9b:1::a00:1": "NAT64", "2002:7f00:1::": "6to4", "2001::1": "Teredo", "::127.0.0.1": "IPv4 address in IPv6", "::ffff:0:7f00:1": "IPv4 address in IPv6",
		"0.0.0.0": "unspecified", "::": "unspecified", "0.0.0.1": "reserved", "224.0.0.1": "multicast", "ff02::1": "multicast", "255.255.255.255": "broadcast", "240.0.0.1": "reserved",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.1": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"198.18.0.1": "benchmarks", "192.0.0.1": "reserved", "2001:10::1": "reserved", "5f00::1": "reserved", "4000::1": "reserved", "fec0::1": "private",
		"93.184.216.34": "", "172.32.0.1": "", "100.128.0.1": "", "2606:4700::1": "", "::ffff:93.184.216.34": "",
	} {
		addr := netip.MustParseAddr(text)
		to := netip.AddrPortFrom(addr, 80)
		got, ok := open.Dials(to)
		if ok != (kind == "") || !strings.Contains(got, kind) {
			t.Errorf("%s: %q, %v; want %q", text, got, ok, kind)
		}
		if ranges.Never(addr.Unmap()) != "" {
			continue
		}
		listed, err := ParseAllow([]string{Target{Addr: addr.Unmap(), Port: 80}.String()})
		if err != nil {
			t.Errorf("%s cannot be listed: %v", text, err)
		}
		if _, ok := listed.Dials(to); !ok {
			t.Errorf("%s is refused although it is listed", text)
		}
		if _, ok := listed.Dials(netip.AddrPortFrom(addr, 81)); ok != (kind == "") {
			t.Errorf("%s is allowed on another port than the listed one", text)
		}
	}
}
