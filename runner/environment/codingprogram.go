package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/endpoint"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
)

// prompt is the task, with the files that it is about.
func (c *coding) prompt() string {
	if len(c.task.Paths) == 0 {
		return c.task.Prompt
	}
	return c.task.Prompt + "\n\nThis is about these files and folders:\n- " + strings.Join(c.task.Paths, "\n- ")
}

// serve serves the model to the program: in its sandbox, where that is its only network, and
// otherwise on this host.
func (c *coding) serve(ctx context.Context, server *endpoint.Endpoint) (address string, stop func(), err error) {
	h := c.t.env.host
	if c.held != nil {
		h.endpoints.Store(c.held.Group, server)
		return spec.ProxyAddress, sync.OnceFunc(func() { h.endpoints.Delete(c.held.Group); server.Close() }), nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(ctx, l) }) // a program whose server has gone fails by itself
	return l.Addr().String(), sync.OnceFunc(func() { cancel(); wg.Wait(); server.Close() }), nil
}

// launch starts the program in a sandbox of its own.
func (c *coding) launch(ctx context.Context, s coder.Start, stdout, stderr io.Writer) (coder.Program, error) {
	if err := furnish(c.home, s.Files); err != nil {
		return nil, err
	}
	return c.start(ctx, c.held, filepath.Join(c.dir, filepath.FromSlash(c.task.Path)), s, stdout, stderr)
}

// furnish writes files into the home folder of a program. The program of an earlier call may
// have put links there: none is followed out of the folder.
func furnish(home string, files map[string]string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a folder: its files are closed before
	for name, text := range files {
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), root.RemoveAll(name)); err != nil {
			return fmt.Errorf("its home folder: %w", err)
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("its home folder: %w", err)
		}
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("its home folder: %w", err)
		}
	}
	return nil
}

// start starts the program in a folder, in a sandbox unless held is nil.
func (c *coding) start(ctx context.Context, held *spec.Profile, dir string, s coder.Start, stdout, stderr io.Writer) (coder.Program, error) {
	p, err := c.t.env.host.launcher.Start(ctx, sandbox.Spec{
		Argv: append([]string{c.program}, s.Args...), Env: c.environ(held, s.Env), Dir: dir, Stdin: strings.NewReader(s.Stdin), Stdout: stdout, Stderr: stderr, Profile: held, Fresh: true,
	})
	if err != nil {
		return nil, err
	}
	return &started{p}, nil
}

// environ is the whole environment of the program: what its driver sets wins over what the
// Tool declares.
func (c *coding) environ(held *spec.Profile, own []string) []string {
	own = append(own, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	name := func(kv string) string { n, _, _ := strings.Cut(kv, "="); return n }
	env := slices.DeleteFunc(tool.HeldEnvironment(held, c.t.env.secrets.env[c.d.Name]), func(kv string) bool {
		return slices.ContainsFunc(own, func(other string) bool { return name(other) == name(kv) })
	})
	return append(env, own...)
}

// started is a program that was started.
type started struct{ *sandbox.Process }

// Wait implements coder.Program.
func (s *started) Wait() coder.Exit {
	e := s.Process.Wait()
	return coder.Exit{Code: e.Code, Signal: e.Signal}
}
