package egress

import "time"

// maxHead bounds the head of a request and of an answer, in bytes.
const maxHead = 64 << 10

// Limits bound what one network may do. Each is recorded when it cuts something.
type Limits struct {
	// Connections open at once. More are answered with 503.
	Connections int
	// Total of connections over the lifetime of the Proxy.
	Total int
	// Bytes of one connection, both ways together.
	Bytes int64
	// TotalBytes of all connections, both ways together.
	TotalBytes int64
	// Header is the time for the head of a request.
	Header time.Duration
	// Dial is the time to look up a name and to connect.
	Dial time.Duration
	// Idle is the time without a byte in any direction.
	Idle time.Duration
}

// DefaultLimits let a package manager work and end what has been forgotten.
func DefaultLimits() Limits {
	return Limits{
		Connections: 256,
		Total:       20_000,
		Bytes:       4 << 30,
		TotalBytes:  16 << 30,
		Header:      10 * time.Second,
		Dial:        15 * time.Second,
		Idle:        5 * time.Minute,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	l.Connections = or(l.Connections, d.Connections)
	l.Total = or(l.Total, d.Total)
	l.Bytes = or(l.Bytes, d.Bytes)
	l.TotalBytes = or(l.TotalBytes, d.TotalBytes)
	l.Header = or(l.Header, d.Header)
	l.Dial = or(l.Dial, d.Dial)
	l.Idle = or(l.Idle, d.Idle)
	return l
}

// or returns the first value, or the second where the first is not positive.
func or[T int | int64 | time.Duration](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}
