package embedded

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Expose adds metrics to those of the server's page, which is one for the process, until
// forget is called.
func (s *Server) Expose(c prometheus.Collector) (forget func(), err error) {
	all := legacyregistry.Registerer()
	if err := all.Register(c); err != nil {
		return nil, fmt.Errorf("add metrics to the page of the server: %w", err)
	}
	return func() { all.Unregister(c) }, nil
}
