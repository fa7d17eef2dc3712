package record

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxAddress is the largest address that the kernel takes.
const maxAddress = 128

// socket is a connection, or the own address of a socket.
func (l *look) socket() (*attempt, error) {
	size := int(l.number(l.call.more))
	if size < 2 || size > maxAddress {
		return nil, nil //nolint:nilnil // it fails
	}
	b := make([]byte, size)
	if n, err := l.read(l.args[l.call.path], b); err != nil || n < size {
		return nil, errUnread
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_UNIX:
		return l.local(string(b[2:]))
	case family == unix.AF_INET && size >= 8:
		return l.internet(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case family == unix.AF_INET6 && size >= 24:
		return l.internet(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[2:]))
	}
	return nil, nil //nolint:nilnil // no connection, or one within the kernel
}

// internet is an address of the internet protocols. Landlock has rules for TCP alone.
func (l *look) internet(ip netip.Addr, port uint16) (*attempt, error) {
	protocol := l.protocol()
	a := &attempt{op: sdk.RecordConnect, address: netip.AddrPortFrom(ip, port).String()}
	tcp := protocol == "TCP" || protocol == "TCPv6"
	if !tcp {
		a.address += "/" + strings.ToLower(strings.TrimSuffix(protocol, "v6"))
	}
	if l.call.does == bind {
		if !tcp || l.rights == nil || !l.rights.Listen {
			return nil, nil //nolint:nilnil // nothing leaves by that
		}
		a.op, a.refused = sdk.RecordListen, true
		return a, nil
	}
	if port == 0 {
		return nil, nil //nolint:nilnil // a resolver asks for the way to an address
	}
	a.refused = tcp && l.rights != nil && l.rights.Connect
	return a, nil
}

// protocol is the kernel's name for that of the socket, such as TCP.
func (l *look) protocol() string {
	var buf [32]byte
	n, err := unix.Getxattr(l.dirOf(l.number(l.call.dir)), "system.sockprotoname", buf[:])
	if err != nil {
		return "unknown"
	}
	name, _, _ := strings.Cut(string(buf[:n]), "\x00")
	return name
}

// dirOf is the place of a descriptor in /proc.
func (l *look) dirOf(fd int32) string { return l.process.dir + "/fd/" + strconv.Itoa(int(fd)) }

// maxOwn is how many of its own sockets in the abstract name space a command is known by.
const maxOwn = 256

// local is a socket of this host.
func (l *look) local(at string) (*attempt, error) {
	abstract, is := strings.CutPrefix(at, "\x00")
	file, _, _ := strings.Cut(at, "\x00")
	switch {
	case is && abstract == "" || !is && file == "":
		return nil, nil //nolint:nilnil // the kernel gives it a name
	case is && l.call.does == bind:
		if len(l.own) < maxOwn {
			l.own[abstract] = true
		}
		return nil, nil //nolint:nilnil // nothing leaves by that
	case is:
		return &attempt{op: sdk.RecordConnect, address: "unix:@" + abstract, refused: l.rights != nil && l.rights.Abstract && !l.own[abstract] && l.bound(abstract)}, nil
	case l.call.does == bind:
		t, err := l.find(unix.AT_FDCWD, file, never)
		if err != nil || t.there || t.nameless() {
			return nil, nil //nolint:nilerr,nilnil // it fails
		}
		return &attempt{op: sdk.RecordCreate, path: t.path(), refused: !l.rights.may(t.folder, toMake(unix.S_IFSOCK))}, nil
	}
	t, err := l.find(unix.AT_FDCWD, file, follow)
	if err != nil || !t.there || t.nameless() || t.kind() != unix.S_IFSOCK {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	return &attempt{op: sdk.RecordConnect, address: "unix:" + t.path()}, nil
}

// maxSockets is how much of the list of sockets is read.
const maxSockets = 1 << 20

// bound reports whether some socket has a name in the abstract name space of the process.
func (l *look) bound(name string) bool {
	f, err := os.Open(l.process.dir + "/net/unix")
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxSockets))
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), " @"); ok && at == strings.ReplaceAll(name, "\x00", "@") {
			return true
		}
	}
	return false
}
