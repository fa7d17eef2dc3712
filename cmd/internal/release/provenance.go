package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"agentctl.dev/agentctl/runner/audit"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// The provenance is an in-toto statement with the predicate of SLSA v1: which files came from
// which commit. It has no times, so that it is the same for the same release.

const (
	builder     = "https://agentctl.dev/release/make"
	buildType   = "https://agentctl.dev/release/v1"
	payloadType = "application/vnd.in-toto+json"
)

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance writes the statement about every file of the release, and signs it if there is a
// key.
func (o *Options) provenance(ctx context.Context, src *source, out string) error {
	files, err := below(out)
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range files {
		sum, err := digest(filepath.Join(out, name))
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, subject{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	b := &s.Predicate.BuildDefinition
	b.BuildType, b.ExternalParameters = buildType, map[string]string{"version": o.Version}
	b.ResolvedDependencies = []subject{
		{URI: "git+https://agentctl.dev/agentctl", Digest: map[string]string{"gitCommit": src.Commit}},
		{Name: "go", URI: "pkg:golang/std@" + runtime.Version()},
	}
	s.Predicate.RunDetails.Builder.ID = o.Builder
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := o.name() + ".provenance.json"
	if o.Key != "" {
		name = o.name() + ".intoto.jsonl"
		if text, err = sign(ctx, o.Key, text); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, name), append(text, '\n'), 0o644)
}

// sign puts a statement into an envelope of DSSE that a key has signed.
func sign(ctx context.Context, key string, text []byte) ([]byte, error) {
	k, err := audit.ReadKey(ctx, key)
	if err != nil {
		return nil, err
	}
	s, err := dsse.NewEnvelopeSigner(signer{k})
	if err != nil {
		return nil, err
	}
	e, err := s.SignPayload(ctx, payloadType, text)
	if err != nil {
		return nil, fmt.Errorf("sign the provenance: %w", err)
	}
	return json.Marshal(e)
}

// signer is a key for receipts as DSSE wants it.
type signer struct{ *audit.FileKey }

// KeyID implements dsse.Signer.
func (s signer) KeyID() (string, error) { return audit.KeyID(s.Public()), nil }
