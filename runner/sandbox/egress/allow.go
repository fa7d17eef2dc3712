package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/sandbox/egress/ranges"
)

// Pattern is one entry of spec.network.allow: host:port.
//
//	api.github.com:443   that name
//	*.example.com:443    each name below example.com, not example.com itself
//	*:443                each name
//	192.0.2.7:443        that address
//	[2001:db8::7]:443    that address
//	10.1.0.0/16:443      each address of that network, at most a /8
//	[fd12:3::/32]:443    the same for IPv6
//
// Upper case is read as lower case and a final dot is left out. The port is one
// number: an open door to every port is one to mail and databases too. Names are
// ASCII, others in their punycode form.
//
// A pattern with a name reaches public addresses only. A name that resolves to a
// loopback, private, link-local or otherwise special address is refused unless
// that address is listed as well. A pattern with an address does not allow the
// names that resolve to it. 0.0.0.0, ::, multicast and broadcast are never
// reached.
type Pattern struct {
	text   string
	kind   patternKind
	name   string // exact name, or what follows the star with its dot
	prefix netip.Prefix
	port   uint16
}

type patternKind int

const (
	exactName patternKind = iota
	belowName
	anyName
	network
)

// String returns the pattern in its usual form.
func (p Pattern) String() string { return p.text }

// AnyHost reports whether the pattern is for every server with a name.
func (p Pattern) AnyHost() bool { return p.kind == anyName }

// widest is the shortest prefix that a network may have: a larger network would
// allow nearly everything.
const widest = 8

// ParsePattern reads one entry. The error text continues the entry: "has no
// port".
func ParsePattern(entry string) (Pattern, error) {
	colon := strings.LastIndexByte(entry, ':')
	if entry == "" || colon <= 0 || strings.Contains(entry, "://") {
		return Pattern{}, errors.New("is not host:port such as api.github.com:443")
	}
	host, port := entry[:colon], entry[colon+1:]
	if strings.Contains(port, "]") {
		return Pattern{}, errors.New("has no port")
	}
	if port == "*" {
		return Pattern{}, errors.New("opens every port: list the ports the tool needs")
	}
	number, err := parsePort(port)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{port: number}
	if err := p.setHost(host); err != nil {
		return Pattern{}, err
	}
	p.text = p.write()
	return p, nil
}

func (p *Pattern) setHost(host string) error {
	if host == "*" {
		p.kind = anyName
		return nil
	}
	if below, ok := strings.CutPrefix(host, "*."); ok {
		if endsInNumber(below) {
			return errors.New("has a star in an address: write a network such as 10.1.0.0/16")
		}
		name := strings.ToLower(strings.TrimSuffix(below, "."))
		p.kind, p.name = belowName, "."+name
		return checkName(name)
	}
	if strings.Contains(host, "*") {
		return errors.New("has a star that is not the whole first part: write *.example.com or *")
	}
	if strings.Contains(host, "/") {
		return p.setNetwork(host)
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
		if !bracketed || !strings.Contains(inner, ":") {
			return errors.New("has brackets around something that is no IPv6 address")
		}
	} else if strings.Contains(host, ":") {
		return errors.New("has an IPv6 address without brackets")
	}
	name, addr, err := parseHost(inner)
	if err != nil {
		return err
	}
	if name != "" {
		p.kind, p.name = exactName, name
		return nil
	}
	p.kind, p.prefix = network, netip.PrefixFrom(addr, addr.BitLen())
	return reachable(addr)
}

func (p *Pattern) setNetwork(host string) error {
	inner := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.Contains(inner, ":") && len(inner) != len(host)-2 {
		return errors.New("has an IPv6 network without brackets")
	}
	if !strings.Contains(inner, ":") && inner != host {
		return errors.New("has brackets around something that is no IPv6 network")
	}
	prefix, err := netip.ParsePrefix(inner)
	if err != nil {
		return errors.New("is neither a name nor a network such as 10.1.0.0/16")
	}
	if prefix.Addr().Is4In6() {
		return errors.New("has an IPv4-mapped network: write it as IPv4")
	}
	if prefix.Bits() < widest {
		return fmt.Errorf("holds too many addresses: a network is a /%d or smaller", widest)
	}
	if prefix != prefix.Masked() {
		return fmt.Errorf("has bits behind its prefix: the network is %s", prefix.Masked())
	}
	p.kind, p.prefix = network, prefix
	return reachable(prefix.Addr())
}

// reachable refuses what would never be reached.
func reachable(addr netip.Addr) error {
	if kind := ranges.Never(addr); kind != "" {
		return fmt.Errorf("is %s, which is never reached", kind)
	}
	return nil
}

func (p *Pattern) write() string {
	host := p.name
	switch p.kind {
	case exactName:
	case belowName:
		host = "*" + p.name
	case anyName:
		host = "*"
	case network:
		if host = p.prefix.String(); p.prefix.IsSingleIP() {
			host = p.prefix.Addr().String()
		}
		if p.prefix.Addr().Is6() {
			host = "[" + host + "]"
		}
	}
	return fmt.Sprintf("%s:%d", host, p.port)
}

// Match reports whether the pattern allows requests to the target.
func (p Pattern) Match(t Target) bool {
	if p.port != t.Port {
		return false
	}
	switch p.kind {
	case exactName:
		return t.Name != "" && t.Name == p.name
	case belowName:
		return len(t.Name) > len(p.name) && strings.HasSuffix(t.Name, p.name)
	case anyName:
		return t.Name != ""
	case network:
		return t.Name == "" && p.prefix.Contains(t.Addr)
	}
	return false
}

// Allow is a list of patterns. The zero value allows nothing.
type Allow []Pattern

// ParseAllow reads spec.network.allow and reports every entry that is wrong.
func ParseAllow(entries []string) (Allow, error) {
	var (
		a    Allow
		errs []error
	)
	for _, entry := range entries {
		p, err := ParsePattern(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("allow %q %w", clip(entry), err))
			continue
		}
		a = append(a, p)
	}
	return a, errors.Join(errs...)
}

// Find returns the first pattern that allows to ask for the target.
func (a Allow) Find(t Target) (Pattern, bool) {
	i := slices.IndexFunc(a, func(p Pattern) bool { return p.Match(t) })
	if i < 0 {
		return Pattern{}, false
	}
	return a[i], true
}

// Dials reports whether an address may be dialled, and the kind of a special
// address, for example "a loopback address". A special address has to be listed
// itself.
func (a Allow) Dials(to netip.AddrPort) (kind string, ok bool) {
	addr := to.Addr().Unmap()
	if kind := ranges.Never(addr); kind != "" {
		return kind, false
	}
	kind = ranges.Special(addr)
	if kind == "" {
		return "", true
	}
	_, listed := a.Find(Target{Addr: addr, Port: to.Port()})
	return kind, listed
}
