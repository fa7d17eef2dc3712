package environment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
)

// Secrets are the values of every secret reference of a run.
type Secrets struct {
	Keys Keys
	// Redactor removes the values from all that is written, shown or sent.
	Redactor *secret.Redactor
	// env holds the declared variables of each tool as NAME=value, by call name.
	env map[string][]string
	// sources hold what the sources of tools need besides, by call name and their own name.
	sources map[string]map[string]string
	// learns is set where a source may be given further secrets.
	learns bool
	// resolved are the references that were read, in order.
	resolved []event.SecretResolved
}

// Keys are the API keys of the models by name.
type Keys map[string]apiKey

// apiKey is a key, or why it is missing.
type apiKey struct {
	key secret.Value
	err error
}

// Of returns the key of a model, the zero Value for a model without one.
func (c Keys) Of(m *v1alpha1.Model) (secret.Value, error) {
	k := c[m.Name]
	return k.key, k.err
}

// resolve resolves every secret reference, before a tool is started. Only the agent's own
// model must have its key: that of another matters when it is asked.
func (h *Host) resolve(ctx context.Context, o *Options) (*Secrets, error) {
	r := secret.Resolver{Exec: h.execute, Stored: keys.Lookup(cmp.Or(h.Keys, h.State))}
	found := Keys{}
	values, resolved := slices.Clone(o.Known), slices.Clone(o.Resolved)
	for i, m := range o.Models {
		k := m.Spec.APIKey
		if k == nil {
			continue
		}
		key, err := r.Resolve(ctx, fmt.Sprintf("model %q: spec.apiKey", m.Name), k.ValueFrom)
		if err != nil && (i == 0 || ctx.Err() != nil) {
			return nil, err
		}
		found[m.Name] = apiKey{key, err}
		if err == nil {
			values, resolved = append(values, key), append(resolved, Resolved(k.ValueFrom, event.SecretResolved{Model: m.Name, Field: "spec.apiKey"}))
		}
	}
	env, sources := map[string][]string{}, map[string]map[string]string{}
	for _, d := range o.programs() {
		for i, v := range d.Spec.Env {
			if v.SuppliedBy != nil {
				continue // a result supplies it
			}
			text := ""
			if v.Value != nil {
				text = *v.Value
			}
			if v.ValueFrom != nil {
				value, err := r.Resolve(ctx, fmt.Sprintf("tool %q: spec.env[%d]", d.Name, i), *v.ValueFrom)
				if err != nil {
					return nil, err
				}
				values, resolved = append(values, value), append(resolved, Resolved(*v.ValueFrom, event.SecretResolved{Tool: d.Name, Field: fmt.Sprintf("spec.env[%d]", i)}))
				text = value.Reveal()
			}
			env[d.Name] = append(env[d.Name], v.Name+"="+text)
		}
		for _, s := range d.Secrets {
			value, err := r.Resolve(ctx, fmt.Sprintf("tool %q: %s", d.Name, s.Field), s.From)
			if err != nil {
				return nil, err
			}
			if values = append(values, value); sources[d.Name] == nil {
				sources[d.Name] = map[string]string{}
			}
			sources[d.Name][s.Name] = value.Reveal()
			resolved = append(resolved, Resolved(s.From, event.SecretResolved{Tool: d.Name, Field: s.Field}))
		}
	}
	values = append(values, secret.ProxyPasswords()...)
	redactor := secret.NewRedactor(values...)
	learns := len(sources) > 0 || slices.ContainsFunc(o.Tools, func(d tool.Definition) bool { return d.Obtains || len(d.Spec.Supplies) > 0 })
	if learns { // what has a secret may obtain another with it
		redactor = secret.NewLearner(values...)
	}
	return &Secrets{Keys: found, Redactor: redactor, env: env, sources: sources, learns: learns, resolved: resolved}, nil
}

// Resolved is the event of a reference that was read. Of a command only the program is
// named: its arguments may be confidential.
func Resolved(from v1alpha1.ValueFrom, e event.SecretResolved) event.SecretResolved {
	switch {
	case from.Env != "":
		e.From, e.Name = "env", from.Env
	case from.File != "":
		e.From, e.Name = "file", from.File
	case len(from.Exec) > 0:
		e.From, e.Name = "exec", from.Exec[0]
	}
	return e
}

// learn hides a value that a source was given during the run from all that is written.
func (s *Secrets) learn(value string) {
	if s.learns {
		s.Redactor.Learn(secret.NewValue(value))
	}
}

// keep hides a value that a result has supplied from all that is written, until the end
// of the run.
func (s *Secrets) keep(value string) { s.Redactor.Keep(secret.NewValue(value)) }

// revealed reports whether a text holds one of the values.
func (s *Secrets) revealed(text []byte) bool {
	return !bytes.Equal(s.Redactor.Bytes(text), text) || !bytes.Equal(s.Redactor.JSON(text), text)
}

// Secret resolves a reference before the environment is opened.
func (h *Host) Secret(ctx context.Context, field string, from v1alpha1.ValueFrom) (secret.Value, error) {
	return secret.Resolver{Exec: h.execute, Stored: keys.Lookup(cmp.Or(h.Keys, h.State))}.Resolve(ctx, field, from)
}

// maxSecretOutput is more than any secret has.
const maxSecretOutput = 1 << 20

// execute runs a command of valueFrom.exec.
func (h *Host) execute(ctx context.Context, argv []string) ([]byte, error) {
	// Standard error is dropped: it may contain the value.
	var out limited
	p, err := h.launcher.Start(ctx, sandbox.Spec{Argv: argv, Env: tool.Environment(nil), Dir: "/", Stdout: &out})
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
