package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/statedir"
)

const (
	// program is the control plane's.
	program = "agentd"
	// startTime bounds the start of a local control plane. If its process ends,
	// that is reported at once; on an idle machine a start takes one second.
	startTime = time.Minute
	// probeTime bounds one look whether it is there.
	probeTime = 10 * time.Second
	// idleTime is after which time an unused control plane ends.
	idleTime = "30m"
	// maxLog is the size above which a start truncates its log.
	maxLog = 4 << 20
)

// ConnectOptions are those of Connect.
type ConnectOptions struct {
	// Notice is called once when a control plane is started. Optional.
	Notice func(string)
	// OnlyRunning does not start one.
	OnlyRunning bool
}

// ErrNotRunning is returned when no local control plane runs, and none was to
// be started.
var ErrNotRunning = errors.New("no local control plane runs")

// Connect returns a client of the current context. The local control plane is
// started when it does not run.
func (c *Config) Connect(ctx context.Context, o ConnectOptions) (*Client, error) {
	if !c.Local() {
		e, err := c.Endpoint(c.current)
		if err != nil {
			return nil, err
		}
		return New(*e)
	}
	l := local{state: c.State, folder: filepath.Join(c.State, "control")}
	cl, err := l.probe(ctx)
	if l.between(err) && !o.OnlyRunning {
		cl, err = l.settle(ctx)
	}
	if err == nil || !l.absent(err) {
		return cl, err
	}
	if o.OnlyRunning {
		return nil, ErrNotRunning
	}
	return l.start(ctx, o.Notice)
}

// declared reports whether a kubeconfig has a context of its own by a name.
func (c *Config) declared(name string) bool {
	return slices.ContainsFunc(c.files, func(k *kubeconfig) bool { return k.Contexts[name] != nil })
}

// local is the control plane of a state folder.
type local struct{ state, folder string }

func (l local) path(name string) string { return filepath.Join(l.folder, name) }

// probe connects to the control plane if it answers.
func (l local) probe(ctx context.Context) (*Client, error) {
	k, err := readConfig(l.path("kubeconfig"))
	if err != nil {
		return nil, err
	}
	c := &Config{files: []*kubeconfig{k}}
	e, err := c.Endpoint(k.CurrentContext)
	if err != nil {
		return nil, err
	}
	e.Context, e.Local = LocalContext, true
	cl, err := New(*e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := cl.Ready(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

// absent reports whether an error of probe means that no control plane runs:
// there is no kubeconfig, the port is closed, or another program has taken the
// port since.
func (l local) absent(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	_, refused := errors.AsType[*StatusError](err)
	return !refused && !l.held()
}

// between reports whether an error of probe may be that of a control plane that
// is starting or stopping: one that holds the folder, and does not refuse.
func (l local) between(err error) bool {
	if err == nil {
		return false
	}
	s, answered := errors.AsType[*StatusError](err)
	_, strange := errors.AsType[*tls.CertificateVerificationError](err)
	_, cut := errors.AsType[*net.OpError](err)
	return l.held() && !strange && (answered && s.Code >= http.StatusInternalServerError || cut || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF))
}

// settle waits until a control plane answers, or has released the folder.
func (l local) settle(ctx context.Context) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		cl, err := l.probe(ctx)
		if !l.between(err) || sleep(ctx, 20*time.Millisecond) != nil {
			return cl, err
		}
	}
}

// held reports whether a control plane holds the folder.
func (l local) held() bool {
	if _, err := os.Stat(l.path("lock")); err != nil {
		return false
	}
	lock := flock.New(l.path("lock"), flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK))
	free, err := lock.TryLock()
	if free {
		_ = lock.Unlock() // it is closed with it
	}
	return err == nil && !free
}

// start starts the control plane as a detached process, and waits until it
// answers.
func (l local) start(ctx context.Context, notice func(string)) (*Client, error) {
	path, err := sandbox.FindProgram(program)
	if err != nil {
		return nil, fail(nil, "the local control plane cannot be started: %v", err).
			hint("run make build, set AGENTCTL_LIBEXEC to the folder that holds %s, or choose another context", program)
	}
	if err := os.MkdirAll(l.folder, 0o700); err != nil {
		return nil, fail(err, "make the folder of the control plane")
	}
	if notice != nil {
		text := "starting the control plane in " + l.state
		if _, err := os.Stat(l.path("etcd")); errors.Is(err, fs.ErrNotExist) {
			text += " (first start)"
		}
		notice(text)
	}
	pid, err := l.detach(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for ended := false; ; {
		cl, err := l.probe(ctx)
		if err == nil {
			return cl, nil
		}
		if ended && !l.held() {
			return nil, fail(nil, "the local control plane ended at once: %s", l.lastWords()).hint("its log is %s", l.path(program+".log"))
		}
		// A process that ended has found another control plane starting at the
		// same time: wait for that.
		ended = ended || reaped(pid)
		if sleep(ctx, 5*time.Millisecond) != nil {
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return nil, cause
			}
			return nil, fail(err, "the local control plane was not ready within %s", startTime).hint("its log is %s", l.path(program+".log"))
		}
	}
}

// kept are the variables that a control plane gets: those with the places of
// files. It takes API keys from the key store, not from the environment of the
// client that happened to start it.
var kept = []string{
	"HOME", "PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"CONTAINERD_ADDRESS", "AGENTCTL_LIBEXEC", "AGENTCTL_OUTER_ISOLATION",
}

// detach starts the program in a session of its own, without inherited files.
func (l local) detach(path string) (pid int, err error) {
	log, err := l.log()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(path, "serve", "--state", l.state, "--idle", idleTime) //nolint:noctx // it outlives us
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = []string{} // not nil: that would inherit the whole environment
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := closeOnExec(); err != nil {
		return 0, fail(err, "start the local control plane")
	}
	if err := cmd.Start(); err != nil {
		return 0, fail(err, "start the local control plane")
	}
	return cmd.Process.Pid, nil
}

// log opens the file for the output of the control plane.
func (l local) log() (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Lstat(l.path(program + ".log")); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	f, err := statedir.OpenFile(l.path(program+".log"), flags)
	if err != nil {
		return nil, fail(err, "open the log of the control plane")
	}
	return f, nil
}

// reaped reports whether the started process has ended, and reaps it.
func reaped(pid int) bool {
	var status syscall.WaitStatus
	n, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return n == pid || errors.Is(err, syscall.ECHILD)
}

// lastWords is the last line of the log that is an error.
func (l local) lastWords() string {
	f, err := statedir.OpenFile(l.path(program+".log"), os.O_RDONLY)
	if err != nil {
		return "it left no log"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 8<<10 {
		_, _ = f.Seek(-8<<10, io.SeekEnd) // otherwise from the start
	}
	b, _ := io.ReadAll(io.LimitReader(f, 8<<10)) // what there is
	last := "it left no word"
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "error: "); ok {
			last = text
		}
	}
	return last
}

// Local reports whether the current context is the control plane of the state
// folder, which sees the same files as this process.
func (c *Config) Local() bool { return c.current == LocalContext && !c.declared(LocalContext) }
