package embedded

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/statedir"
)

// listen takes the port of the last time if it is free, so that a running
// client can continue; otherwise any port. Another program on the old port
// learns nothing: it has no certificate, and clients send nothing before they
// have verified one.
func (s *Server) listen(ctx context.Context) error {
	var lc net.ListenConfig
	path := s.folder.path(portFile)
	if port := lastPort(path); port != "" {
		s.listener, _ = lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	}
	if s.listener == nil {
		l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		s.listener = l
	}
	return writePrivate(path, []byte(s.port()+"\n"))
}

func lastPort(path string) string {
	b, err := statedir.ReadFile(path, 6) // five digits and the end of the line
	if err != nil {
		return ""
	}
	port := strings.TrimSpace(string(b))
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1024 {
		return ""
	}
	return port
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String()) // made by a listener
	return port
}

// URL is where the API is served.
func (s *Server) URL() string { return serverURL(s.port()) }

// serverURL is the address that clients use.
func serverURL(port string) string { return "https://" + net.JoinHostPort("127.0.0.1", port) }
