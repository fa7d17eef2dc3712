package sdk

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"agentctl.dev/agentctl/plugins/internal/toolpb"
)

// lonely is how long a program waits for a caller before it ends: the socket file is
// removed once a caller has connected, so no other can come later.
const lonely = 30 * time.Second

// Serve is the whole main function of a plugin program. It returns when the
// caller ends the program or goes away. It panics when a tool is not usable: a
// mistake that must not survive the program's first start.
func Serve(tools ...Tool) {
	if os.Getenv(toolpb.ProbesKey) == "1" {
		tools = append(slices.Clone(tools), probes()...)
	}
	s, err := newServer(tools)
	if err != nil {
		panic("plugin: " + err.Error())
	}
	g := &guest{server: s}
	g.shield()
	defer g.listen()()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: toolpb.Version, MagicCookieKey: toolpb.CookieKey, MagicCookieValue: toolpb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{toolpb.Version: {toolpb.PluginName: g}},
		GRPCServer:       g.newGRPC,
		Logger:           hclog.NewNullLogger(),
	})
}

// guest is this program as go-plugin sees it.
type guest struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
	stderr *os.File
	settle sync.Once

	mu    sync.Mutex
	conns int
	timer *time.Timer
}

// newGRPC makes the server that go-plugin fills. GRPCController.Shutdown, the
// health service and the handshake line are go-plugin's.
func (g *guest) newGRPC(opts []grpc.ServerOption) *grpc.Server {
	opts = append(opts, grpc.MaxRecvMsgSize(toolpb.MaxMessage), grpc.StatsHandler(g),
		// Fixed windows keep gRPC from pinging the other side with every message.
		grpc.InitialWindowSize(toolpb.Window), grpc.InitialConnWindowSize(toolpb.Window))
	return grpc.NewServer(opts...)
}

// GRPCServer implements plugin.GRPCPlugin. By now the handshake variables have
// been read; a program that a tool starts must not find them.
func (g *guest) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	toolpb.RegisterToolServer(s, g.server)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == toolpb.CookieKey || strings.HasPrefix(name, "PLUGIN_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(lonely, func() {
		g.server.endAll()
		s.Stop()
	})
	return nil
}

// listen has calls end before SIGTERM ends the program: what a tool has started
// must not be left behind by a caller that was killed.
func (g *guest) listen() (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			g.server.endAll()
			signal.Reset(syscall.SIGTERM)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // now it ends as it would have
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// GRPCClient implements plugin.GRPCPlugin; a program of tools is never a client.
func (g *guest) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// HandleConn implements stats.Handler: the program ends with its caller.
func (g *guest) HandleConn(_ context.Context, s stats.ConnStats) {
	// go-plugin has by now put pipes in place of stdout and stderr that only its
	// own client drains; ours does not, so a chatty tool would block for ever.
	g.settle.Do(func() { os.Stdout, os.Stderr = g.stderr, g.stderr })
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		g.conns++
		g.timer.Stop()
	case *stats.ConnEnd:
		g.conns--
		if g.conns == 0 {
			g.timer.Reset(callerGone)
		}
	}
}

// callerGone is how long a program outlives its last connection.
const callerGone = time.Second

// TagRPC implements stats.Handler.
func (g *guest) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (g *guest) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (g *guest) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
