package gitsource

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/safetext"
	"agentctl.dev/agentctl/runner/workspace"
)

const (
	// maxReport bounds what is kept of the messages of git.
	maxReport = 16 << 10
	// quiet is how long a clone says nothing, progressEvery the time between two reports.
	quiet         = 2 * time.Second
	progressEvery = time.Second
	// giveUp is how long git may take to end when it was told to.
	giveUp = 2 * time.Second
)

// config is what git is told in every call, over all configuration. What a repository
// brings cannot start a program then.
var config = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.protectHFS=true", "core.protectNTFS=true", "core.askPass=", "credential.helper=", "credential.interactive=false",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "transfer.bundleURI=false", "fetch.uriProtocols=",
	"http.followRedirects=false", "http.lowSpeedLimit=100", "http.lowSpeedTime=60",
	"gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false", "init.defaultBranch=main",
	"checkout.workers=0",
}

// passed are the variables of the user that reach git: how a server is reached and trusted.
var passed = []string{
	"PATH", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
}

// git is the program, for one repository.
type git struct {
	o       *Options
	address *url.URL
	began   time.Time
}

// failure is what git said when it failed: text for people, said to find the cause.
type failure struct {
	err        error
	text, said string
}

func (f *failure) Error() string {
	if f.text == "" {
		return f.err.Error()
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.err }

// environment of git: no configuration, credentials or programs of the user but ssh's own.
func (g *git) environment() []string {
	env := []string{
		"HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GIT_LFS_SKIP_SMUDGE=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=" + g.address.Scheme, "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=30",
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if g.o.Password.Reveal() == "" {
		return env
	}
	// In the environment, which only the user can read, and not among the arguments. The
	// name bounds it to the server of the URL.
	user := "x-access-token"
	if a := g.o.Source.Auth; a != nil && a.Username != "" {
		user = a.Username
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + g.o.Password.Reveal()))
	return append(env, "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=http."+g.address.Scheme+"://"+g.address.Host+"/.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic)
}

func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	var all []string
	for _, c := range config {
		all = append(all, "-c", c)
	}
	if args[0] != "clone" && args[0] != "init" {
		all = append(all, "-C", g.o.Dir)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...) //nolint:gosec // the arguments are checked, and -- is before them
	cmd.Env, cmd.Dir = g.environment(), "/"
	// Its children, such as the one that reads from the server, end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = giveUp
	return cmd
}

func (g *git) run(ctx context.Context, args ...string) error {
	cmd := g.command(ctx, args...)
	report := &report{progress: g.o.Progress, began: g.start()}
	cmd.Stderr = report
	return g.ended(ctx, cmd.Run(), report)
}

// output returns what git prints, of which only a little is expected.
func (g *git) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	var out bytes.Buffer
	report := &report{}
	cmd.Stdout, cmd.Stderr = &out, report
	err := g.ended(ctx, cmd.Run(), report)
	return out.Bytes(), err
}

// stream reads what git prints while it prints it. The error of the reader counts more.
func (g *git) stream(ctx context.Context, read func(io.Reader) error, args ...string) error {
	cmd := g.command(ctx, args...)
	report := &report{}
	cmd.Stderr = report
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	wrong := read(out)
	err = cmd.Wait()
	if wrong != nil {
		return wrong
	}
	return g.ended(ctx, err, report)
}

func (g *git) ended(ctx context.Context, err error, r *report) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &failure{err, r.text(g.o.Password.Reveal()), r.said()}
}

// start is when the first program was started.
func (g *git) start() time.Time {
	if g.began.IsZero() {
		g.began = time.Now()
	}
	return g.began
}

// explain gives an error its reason and a next step.
func (g *git) explain(ctx context.Context, err error) error {
	what := "clone " + safetext.Visible(g.o.Source.URL, 0)
	if ref := g.o.Source.Ref; ref != "" {
		what += " at " + safetext.Visible(ref, 0)
	}
	if known := (*reason.Error)(nil); errors.As(err, &known) {
		return fmt.Errorf("%s: %w", what, err)
	}
	out := reason.New(reason.WorkspaceUnavailable, "%s: %w", what, err)
	said := ""
	if f, ok := errors.AsType[*failure](err); ok {
		said = f.said
	}
	has := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(said, t) {
				return true
			}
		}
		return false
	}
	switch {
	case ctx.Err() != nil:
		return out.WithHint("give it more time with spec.limits.timeout of the agent, or a smaller source.git.depth")
	case errors.Is(err, workspace.ErrTooLarge):
		return out.WithHint("raise sizeLimit of the workspace, or write a smaller source.git.depth")
	case errors.Is(err, exec.ErrNotFound):
		return out.WithHint("install git on this host")
	case has("Host key verification failed"):
		return out.WithHint("the key of the host is not the one in the known hosts of the user, or is not there: compare it with what its owner publishes, and connect once by hand with ssh")
	case has("terminal prompts disabled", "Authentication failed", "could not read Username", "Permission denied (") && g.o.Password.Reveal() == "":
		out.Reason = reason.CredentialMissing
		return out.WithHint("name a token in source.git.auth.password.valueFrom; for ssh, add a key to the agent")
	case has("Authentication failed", "could not read Username", "terminal prompts disabled"):
		out.Reason = reason.CredentialRejected
		return out.WithHint("the server refused the token of source.git.auth.password, or it may not read this repository")
	case has("Remote branch", "couldn't find remote ref", "not our ref"):
		return out.WithHint("source.git.ref is a branch, a tag, or the whole id of a commit")
	case has("error: 301", "error: 302", "error: 303", "error: 307", "error: 308", "url base from redirection"):
		return out.WithHint("redirects are not followed: write the URL that it leads to")
	}
	return out
}

// report keeps the end of what git says, and reports how far it is.
type report struct {
	progress func(string)
	began    time.Time

	mu   sync.Mutex
	kept []byte
	last time.Time
}

// Write implements io.Writer.
func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, p...)
	if len(r.kept) > maxReport {
		r.kept = append(r.kept[:0:0], r.kept[len(r.kept)-maxReport/2:]...)
	}
	if now := time.Now(); r.progress != nil && now.Sub(r.began) > quiet && now.Sub(r.last) >= progressEvery {
		if line := lastLine(r.kept); line != "" {
			r.last = now
			r.progress(line)
		}
	}
	return len(p), nil
}

// said is what git and ssh said, without what the server did.
func (r *report) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for line := range strings.FieldsFuncSeq(string(r.kept), func(c rune) bool { return c == '\n' || c == '\r' }) {
		if !strings.HasPrefix(line, "remote: ") {
			all.WriteString(line + "\n")
		}
	}
	return all.String()
}

// text is what git gave as the cause, without what the server said or the secret.
func (r *report) text(secret string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for line := range strings.FieldsFuncSeq(string(r.kept), func(c rune) bool { return c == '\n' || c == '\r' }) {
		line = strings.TrimSpace(line)
		if cause, ok := strings.CutPrefix(line, "fatal: "); ok && len(all) < 3 {
			all = append(all, cause)
		} else if cause, ok := strings.CutPrefix(line, "error: "); ok && len(all) < 3 {
			all = append(all, cause)
		}
	}
	text := strings.Join(all, "; ")
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return safetext.Visible(clipTo(text, 500), 0)
}

// lastLine is the last whole report of progress.
func lastLine(b []byte) string {
	lines := strings.FieldsFunc(string(b), func(c rune) bool { return c == '\n' || c == '\r' })
	for _, last := range slices.Backward(lines) {
		if line := strings.TrimSpace(last); strings.Contains(line, "%") {
			return safetext.Visible(clipTo(line, 120), 0)
		}
	}
	return ""
}

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
