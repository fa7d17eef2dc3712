package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
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
	if err := p.serve(); err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+": "+err.Error())
		os.Exit(1) //nolint:forbidigo // Serve is the whole main function of its program
	}
}

// process is this program, which serves one caller.
type process struct {
	server *server
	// handshake is what standard output was; stderr is what the tools have in its place.
	handshake, stderr *os.File

	mu    sync.Mutex
	conns int
	timer *time.Timer
}

// serve is the server's end of go-plugin's handshake, and returns when the caller has
// gone. go-plugin's own Serve links net/rpc, reflection and four services that agentctl
// does not use: a quarter of the time in which a program of tools starts.
func (p *process) serve() error {
	if os.Getenv(toolpb.CookieKey) != toolpb.CookieValue {
		return errors.New("this program serves tools and is started by agentctl; \"agentctl plugin test\" tries it")
	}
	if os.Getenv("PLUGIN_CLIENT_CERT") != "" {
		return errors.New("the caller demands TLS, which this program does not serve")
	}
	p.shield()
	defer p.listen()()
	listener, err := net.Listen("unix", socketPath(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))) //nolint:noctx // returns at once
	if err != nil {
		return fmt.Errorf("listen for the caller: %w", err)
	}
	g := p.newGRPC()
	if err := p.register(g); err != nil {
		return fmt.Errorf("clear the environment of the handshake: %w", err)
	}
	if _, err := fmt.Fprintf(p.handshake, "%d|%d|unix|%s|grpc\n", coreVersion, toolpb.Version, listener.Addr()); err != nil {
		return fmt.Errorf("tell the caller where to connect: %w", errors.Join(err, listener.Close()))
	}
	os.Stdout = p.stderr
	return g.Serve(listener) // closes the listener, which removes its file
}

// coreVersion is the version of the handshake.
const coreVersion = 1

// socketPath is a new path in a folder, or in the system's for temporary files. The name is
// short: callers choose a folder in which 17 bytes are left of the 107 of an address.
func socketPath(dir string) string {
	return filepath.Join(cmp.Or(dir, os.TempDir()), fmt.Sprintf("plugin%d", rand.Uint32()))
}

func (p *process) newGRPC() *grpc.Server {
	return grpc.NewServer(grpc.MaxRecvMsgSize(toolpb.MaxMessage), grpc.StatsHandler(p),
		// Fixed windows keep gRPC from pinging the other side with every message.
		grpc.InitialWindowSize(toolpb.Window), grpc.InitialConnWindowSize(toolpb.Window),
		// Calls that come one after another share a goroutine, whose stack has grown.
		grpc.NumStreamWorkers(1))
}

// register adds the service. By now the handshake variables have been read; a program
// that a tool starts must not find them.
func (p *process) register(s *grpc.Server) error {
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
// must not be left behind by a caller that was killed. SIGINT is for the caller, who
// may be behind the same terminal; programs that tools start do not inherit that.
func (p *process) listen() (stop func()) {
	signals, interrupts, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM)
	signal.Notify(interrupts, os.Interrupt)
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
		signal.Stop(interrupts)
		close(done)
	}
}

// HandleConn implements stats.Handler: the program ends with its caller.
func (p *process) HandleConn(_ context.Context, s stats.ConnStats) {
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
