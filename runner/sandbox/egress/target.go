package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Target is a server that a program asks for.
type Target struct {
	// Name in lower case without a final dot; "" when Addr is set.
	Name string
	// Addr is an address literal; the IPv4 address of an IPv4-mapped one.
	Addr netip.Addr
	Port uint16
}

// String returns host:port as one writes it.
func (t Target) String() string { return net.JoinHostPort(t.Host(), strconv.Itoa(int(t.Port))) }

// Host returns the name or the address.
func (t Target) Host() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Addr.String()
}

// ParseTarget reads the host:port of a request. otherwise is the port of a
// target without one; 0: a port is required.
//
// Every spelling of a server has the same result, or is refused. Refused are
// names that a resolver might take for an address though they are none (127.1,
// 0x7f000001, 2130706433, 0177.0.0.1), zones, and names that are not ASCII.
func ParseTarget(hostport string, otherwise uint16) (Target, error) {
	host, port, err := splitPort(hostport)
	if err != nil {
		return Target{}, err
	}
	t := Target{Port: otherwise}
	if port != "" || otherwise == 0 {
		if t.Port, err = parsePort(port); err != nil {
			return Target{}, err
		}
	}
	t.Name, t.Addr, err = parseHost(host)
	return t, err
}

// splitPort cuts host, [host], host:port and [host]:port. Only an IPv6 address
// may be in brackets.
func splitPort(s string) (host, port string, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", "", errors.New("has brackets around something that is no IPv6 address")
		}
		if rest == "" {
			return host, "", nil
		}
		port, ok := strings.CutPrefix(rest, ":")
		if !ok || port == "" {
			return "", "", errors.New("is not [address]:port")
		}
		return host, port, nil
	}
	switch strings.Count(s, ":") {
	case 0:
		return s, "", nil
	case 1:
		if host, port, _ = strings.Cut(s, ":"); port == "" {
			return "", "", errors.New("has an empty port")
		}
		return host, port, nil
	}
	return "", "", errors.New("is not host:port; an IPv6 address stands in brackets")
}

func parsePort(s string) (uint16, error) {
	if s == "" {
		return 0, errors.New("has no port")
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("has no port between 1 and 65535: %s", clip(s))
	}
	return uint16(n), nil
}

func parseHost(host string) (string, netip.Addr, error) {
	if strings.Contains(host, ":") || endsInNumber(host) {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", netip.Addr{}, errors.New("is neither a name nor an address as it is usually written")
		}
		if addr.Zone() != "" {
			return "", netip.Addr{}, errors.New("has a zone")
		}
		return "", addr.Unmap(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return name, netip.Addr{}, checkName(name)
}

// endsInNumber is the rule by which browsers distinguish an IPv4 address from a
// name; resolvers of C libraries use the rule, too.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func checkName(name string) error {
	if name == "" {
		return errors.New("has no host")
	}
	if len(name) > 253 {
		return errors.New("has a name of more than 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return errors.New("has a name with an empty part")
		}
		if len(label) > 63 {
			return errors.New("has a name with a part of more than 63 characters")
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return errors.New("has a name with a hyphen at the edge of a part")
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			case c >= 0x80:
				return errors.New("has a name that is not ASCII: write its punycode form, xn--…")
			default:
				return fmt.Errorf("has a name with the character %q", c)
			}
		}
	}
	return nil
}

// clip shortens untrusted text to a length that is readable in a message.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
