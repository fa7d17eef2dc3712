package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// Escapes is the file name of the program that tries to get out of a sandbox.
const Escapes = "agentctl-escape"

// Escape starts a program that tries to get out of a sandbox of this host, in
// every way that agentctl-escape knows, and returns all attempts. An attempt
// that is Open has found a hole. Escape creates the targets outside and removes
// them when it returns.
func (l *Launcher) Escape(ctx context.Context) ([]spec.Attempt, error) {
	out, err := newOutside()
	if err != nil {
		return nil, fmt.Errorf("prepare an escape: %w", err)
	}
	defer out.close()
	own := New(Options{Helper: l.opts.Helper, TempDir: l.opts.TempDir})
	defer func() { _ = own.Close() }()
	return own.attempt(ctx, &spec.Profile{
		Workspace: out.targets.Workspace, Access: spec.AccessReadWrite,
		ReadOnly: out.targets.Fixed, Masked: out.targets.Masked,
	}, out.targets)
}

// attempt runs the attempts under a profile; nil is level None.
func (l *Launcher) attempt(ctx context.Context, p *spec.Profile, t spec.Targets) ([]spec.Attempt, error) {
	program, err := FindProgram(Escapes)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	proc, err := l.Start(ctx, Spec{
		Argv: []string{program, spec.EscapeArg}, Dir: "/", Profile: p, Fresh: true,
		Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		proc.Kill(0)
	}
	exit := proc.Wait()
	var list []spec.Attempt
	for d := json.NewDecoder(&out); d.More(); {
		var a spec.Attempt
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("read the attempts: %w", err)
		}
		list = append(list, a)
	}
	if exit != (ExitInfo{}) || len(list) == 0 {
		return list, fmt.Errorf("the attempts ended with %v after %d: %s", exit, len(list), excerpt(errs.String()))
	}
	return list, nil
}

func excerpt(s string) string { return s[:min(len(s), maxTail)] }

// outside are resources that a program in a sandbox must not reach.
type outside struct {
	targets spec.Targets
	dir     string
	closers []func() error
	work    sync.WaitGroup
}

func newOutside() (o *outside, err error) {
	o = &outside{}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if o.dir, err = os.MkdirTemp("", "agentctl-escape-"); err != nil {
		return o, err
	}
	if o.dir, err = filepath.EvalSymlinks(o.dir); err != nil {
		return o, err
	}
	ws := filepath.Join(o.dir, "workspace")
	o.targets = spec.Targets{
		File: filepath.Join(o.dir, "secret"), Socket: filepath.Join(o.dir, "socket"), Process: os.Getpid(), Workspace: ws, Inside: true,
		Abstract: "agentctl-escape-" + strconv.Itoa(os.Getpid()) + filepath.Base(o.dir),
		Fixed:    []string{ws + "/.git/config", ws + "/.git/hooks"}, Masked: []string{ws + "/.env", ws + "/keys"},
	}
	for _, dir := range []string{ws + "/.git/hooks", ws + "/keys"} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	for _, file := range []string{o.targets.File, ws + "/.git/config", ws + "/.env", ws + "/keys/key"} {
		err = errors.Join(err, os.WriteFile(file, []byte("secret"), 0o600))
	}
	if err != nil {
		return o, err
	}
	return o, o.listen()
}

// listen opens the sockets, and answers packets.
func (o *outside) listen() error {
	for _, at := range []struct{ network, address string }{{"unix", o.targets.Socket}, {"unix", "@" + o.targets.Abstract}, {"tcp4", "127.0.0.1:0"}} {
		l, err := net.Listen(at.network, at.address) //nolint:noctx // closed below
		if err != nil {
			return err
		}
		o.closers = append(o.closers, l.Close)
		if at.network == "tcp4" {
			o.targets.TCP = l.Addr().String()
		}
	}
	u, err := net.ListenPacket("udp4", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		return err
	}
	o.closers = append(o.closers, u.Close)
	o.targets.UDP = u.LocalAddr().String()
	o.work.Go(func() {
		b := make([]byte, 64)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(b[:n], from)
		}
	})
	return nil
}

func (o *outside) close() {
	for _, c := range o.closers {
		_ = c()
	}
	o.work.Wait()
	if o.dir != "" {
		_ = os.RemoveAll(o.dir)
	}
}
