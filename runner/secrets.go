package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
)

// credentials are the keys of the models by name.
type credentials map[string]credential

// credential is a key, or why there is none.
type credential struct {
	key secret.Value
	err error
}

// of returns the key of a model, the zero Value for one that wants none.
func (c credentials) of(m *v1alpha1.Model) (secret.Value, error) {
	k := c[m.Name]
	return k.key, k.err
}

// secrets resolves every reference of the plan, before anything is started. From
// here on nothing that is written, shown or sent holds their values. Only the
// agent's own model must have its key: that of another counts when it is asked.
func (s *session) secrets(ctx context.Context) (credentials, error) {
	r := secret.Resolver{Exec: s.execute, Stored: keys.Lookup(s.opts.State)}
	found := credentials{}
	var values []secret.Value
	for i, m := range s.everyModel() {
		k := m.Spec.APIKey
		if k == nil {
			continue
		}
		key, err := r.Resolve(ctx, fmt.Sprintf("model %q: spec.apiKey", m.Name), k.ValueFrom)
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		found[m.Name] = credential{key, err}
		if err == nil {
			values = append(values, key)
		}
	}
	env := map[string][]string{}
	for _, d := range s.tools {
		for i, v := range d.Spec.Env {
			text := ""
			if v.Value != nil {
				text = *v.Value
			}
			if v.ValueFrom != nil {
				value, err := r.Resolve(ctx, fmt.Sprintf("tool %q: spec.env[%d]", d.Name, i), *v.ValueFrom)
				if err != nil {
					return nil, err
				}
				values = append(values, value)
				text = value.Reveal()
			}
			env[d.Name] = append(env[d.Name], v.Name+"="+text)
		}
	}
	s.redactor.Store(secret.NewRedactor(append(values, proxyPasswords()...)...))
	s.pool.Dir, s.pool.Env = s.root(), env
	return found, nil
}

// maxSecretOutput is more than any secret has.
const maxSecretOutput = 1 << 20

// execute runs a command of valueFrom.exec through the one launch seam.
func (s *session) execute(ctx context.Context, argv []string) ([]byte, error) {
	// What the command says on standard error is dropped: it may hold the value.
	var out limited
	p, err := s.launcher.Start(ctx, sandbox.Spec{Argv: argv, Env: tool.Environment(nil), Dir: "/", Stdout: &out})
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill(time.Second)
		return nil, context.Cause(ctx)
	}
	if info := p.Wait(); info != (sandbox.ExitInfo{}) {
		return nil, errors.New(info.String())
	}
	return out.Bytes(), nil
}

// limited keeps what a secret can hold and fails on more.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxSecretOutput {
		return 0, fmt.Errorf("more than %d bytes", maxSecretOutput)
	}
	return l.Buffer.Write(p)
}
