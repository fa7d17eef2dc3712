package sdk

import (
	"context"
	"encoding/json"
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
	serveAll(newServer(withProbes(tools)))
}

// ServeDescribed is Serve for a program that carries what Describe returned for the same
// tools. Its schemas are made when a call needs them, and not with every start. Mistakes
// in a tool are then reported by its calls, so a test of the program has to compare
// described with Describe.
func ServeDescribed(described []byte, tools ...Tool) {
	var infos []toolInfo
	if err := json.Unmarshal(described, &infos); err != nil {
		panic("plugin: read the description of the tools: " + err.Error())
	}
	same := func(i toolInfo, t Tool) bool { return i.Name == t.name }
	if !slices.EqualFunc(infos, tools, same) {
		panic("plugin: the program carries a description of other tools: write what Describe returns again")
	}
	all := withProbes(tools)
	more, err := describe(all[len(tools):])
	if err != nil {
		panic("plugin: " + err.Error())
	}
	serveAll(describedServer(all, append(infos, more...)))
}

// withProbes adds the tools that the caller of this program tests it with, if it does.
func withProbes(tools []Tool) []Tool {
	if os.Getenv(toolpb.ProbesKey) != "1" {
		return tools
	}
	return append(slices.Clone(tools), probes()...)
}

// serveAll is the main function of a program whose server could be made.
func serveAll(s *server, err error) {
	if err != nil {
		panic("plugin: " + err.Error())
	}
	p := &process{server: s}
	p.shield()
	defer p.listen()()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{ProtocolVersion: toolpb.Version, MagicCookieKey: toolpb.CookieKey, MagicCookieValue: toolpb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{toolpb.Version: {toolpb.PluginName: p}},
		GRPCServer:       p.newGRPC,
		Logger:           hclog.NewNullLogger(),
	})
}

// process is this program as go-plugin sees it.
type process struct {
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
func (p *process) newGRPC(opts []grpc.ServerOption) *grpc.Server {
	opts = append(opts, grpc.MaxRecvMsgSize(toolpb.MaxMessage), grpc.StatsHandler(p),
		// Fixed windows keep gRPC from pinging the other side with every message.
		grpc.InitialWindowSize(toolpb.Window), grpc.InitialConnWindowSize(toolpb.Window),
		// Calls that come one after another share a goroutine, whose stack has grown.
		grpc.NumStreamWorkers(1))
	return grpc.NewServer(opts...)
}

// GRPCServer implements plugin.GRPCPlugin. By now the handshake variables have
// been read; a program that a tool starts must not find them.
func (p *process) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	toolpb.RegisterToolServer(s, p.server)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == toolpb.CookieKey || strings.HasPrefix(name, "PLUGIN_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(lonely, func() {
		p.server.endAll()
		s.Stop()
	})
	return nil
}

// listen has calls end before SIGTERM ends the program: what a tool has started
// must not be left behind by a caller that was killed.
func (p *process) listen() (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			p.server.endAll()
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
func (p *process) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// HandleConn implements stats.Handler: the program ends with its caller.
func (p *process) HandleConn(_ context.Context, s stats.ConnStats) {
	// go-plugin has by now put pipes in place of stdout and stderr that only its
	// own client drains; ours does not, so a chatty tool would block for ever.
	p.settle.Do(func() { os.Stdout, os.Stderr = p.stderr, p.stderr })
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		p.conns++
		p.timer.Stop()
	case *stats.ConnEnd:
		p.conns--
		if p.conns == 0 {
			p.timer.Reset(callerGone)
		}
	}
}

// callerGone is how long a program outlives its last connection.
const callerGone = time.Second

// TagRPC implements stats.Handler.
func (p *process) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (p *process) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (p *process) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
