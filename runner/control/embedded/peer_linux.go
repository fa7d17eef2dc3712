package embedded

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

const (
	diagRequest = unix.SizeofNlMsghdr + 56 // struct inet_diag_req_v2
	diagUser    = unix.SizeofNlMsghdr + 64 // idiag_uid of struct inet_diag_msg
)

// userOfPeer asks the kernel which user has the socket at the other end of a
// connection on this machine.
func userOfPeer(c net.Conn) int {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 || local.IP.To4() == nil || remote.IP.To4() == nil {
		return unknownUser
	}
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return unknownUser
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written that could be lost
	b := make([]byte, diagRequest)
	binary.NativeEndian.PutUint32(b, diagRequest)
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(r[4:], ^uint32(0)) // in any state
	binary.BigEndian.PutUint16(r[8:], uint16(remote.Port))
	binary.BigEndian.PutUint16(r[10:], uint16(local.Port))
	copy(r[12:], remote.IP.To4())
	copy(r[28:], local.IP.To4())
	binary.NativeEndian.PutUint64(r[48:], ^uint64(0)) // without a cookie
	if err := unix.Sendto(s, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return unknownUser
	}
	answer := make([]byte, 512)
	n, _, err := unix.Recvfrom(s, answer, unix.MSG_DONTWAIT) // the kernel has answered already
	if err != nil || n < diagUser+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return unknownUser
	}
	return int(binary.NativeEndian.Uint32(answer[diagUser:]))
}
