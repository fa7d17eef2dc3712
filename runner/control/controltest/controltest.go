// Package controltest holds what the tests of a control plane share: a log that many write, and what may be left when it has stopped.
package controltest

import (
	"bytes"
	"sync"

	"go.uber.org/goleak"
)

// Log is a text that several goroutines write while a test reads it.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String is what was written until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// LeftByServer are goroutines that the API server's libraries do not wait for;
// what the server itself leaves is a test of its own.
func LeftByServer() []goleak.Option {
	return []goleak.Option{
		// A read that waits for the watch cache leaves this behind for as long as it might have waited.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshAndBlock.func2"),
		// The log of the health checks is flushed for ever.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/util/wait.BackoffUntilWithContext"),
	}
}
