// Package artifact fetches folders that registries keep as OCI artifacts or images, and keeps them by their digest.
//
// A digest is over a manifest, which has the digests of its layers, so that a registry
// can neither exchange nor add a file. What was fetched is compared with its digest each
// time it is used.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/image/reference"
	"agentctl.dev/agentctl/runner/statedir"
)

// Limits of an artifact. It holds texts and scripts, not programs.
const (
	maxManifest   = 1 << 20
	maxCompressed = 32 << 20
	maxUnpacked   = 64 << 20
	maxLayers     = 32
	maxEntries    = 4096
	maxPath       = 512
	maxDepth      = 16
)

// fetchTime bounds the fetching of one artifact.
const fetchTime = 2 * time.Minute

// Store keeps artifacts in a folder.
type Store struct {
	// Dir is the folder; it is created when it is needed.
	Dir string
	// Offline asks no registry: what is not kept is an error.
	Offline bool
}

// OfSkills returns Folder of the store that a state folder has for the images of skills; ""
// is the folder that statedir.Find finds.
func OfSkills(state string, offline bool) func(ctx context.Context, ref string) (string, error) {
	return func(ctx context.Context, ref string) (string, error) {
		dir, err := statedir.Find(state)
		if err != nil {
			return "", err
		}
		store := Store{Dir: filepath.Join(dir, "cache", "skills"), Offline: offline}
		return store.Folder(ctx, ref)
	}
}

// Folder returns the folder on this host with the files of an artifact, which is fetched
// if it is not kept yet. An error with a reason is about the way to the artifact, any other
// about the reference or about what the artifact holds.
func (s *Store) Folder(ctx context.Context, text string) (string, error) {
	ref, err := reference.Parse(text)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.Dir, ref.Digest.Encoded())
	files := filepath.Join(dir, filesDir)
	if _, err := os.Lstat(dir); err == nil {
		if err := check(ctx, dir, ref.Digest); err != nil {
			return "", reason.New(reason.WorkspaceUnavailable, "%s is kept in %s, and differs from its digest: %w", ref, dir, err).
				WithHint("remove that folder: it is fetched again")
		}
		return files, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for %s: %w", ref, err)
	}
	if s.Offline && ref.Layout == "" {
		return "", reason.New(reason.WorkspaceUnavailable, "%s is not kept on this host", ref).WithHint("agentctl validate -f fetches what manifests name")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, fmt.Errorf("it took longer than %s", fetchTime))
	defer cancel()
	all, err := fetch(ctx, ref)
	if err != nil {
		return "", err
	}
	tree, err := all.tree(ref.Digest)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	if err := keep(dir, all, tree); err != nil {
		return "", reason.New(reason.WorkspaceUnavailable, "keep %s: %w", ref, err)
	}
	return files, nil
}

// fetch reads an artifact from where its reference says.
func fetch(ctx context.Context, ref reference.Reference) (blobs, error) {
	if ref.Layout != "" {
		all, err := gather(ctx, layoutSource(ref.Layout), ref.Digest)
		if known, ok := errors.AsType[*contentError](err); ok {
			return nil, fmt.Errorf("%s: %w", ref, known)
		}
		if err != nil {
			return nil, reason.New(reason.WorkspaceUnavailable, "read %s: %w", ref, err).
				WithHint("see that the path leads to an OCI layout, a folder or a tar file, with an artifact of this digest")
		}
		return all, nil
	}
	from, err := openRegistry(ref)
	if err != nil {
		return nil, err
	}
	defer from.close()
	all, err := gather(ctx, from, ref.Digest)
	if err != nil {
		return nil, unreachable(ctx, ref, err)
	}
	return all, nil
}

// source is where the blobs of an artifact are. What it returns was not compared with the
// digest yet, and has at most so many bytes or is an error.
type source interface {
	manifest(ctx context.Context, d digest.Digest) ([]byte, error)
	layer(ctx context.Context, d digest.Digest, most int64) ([]byte, error)
}

// blobs are parts of an artifact by their digests.
type blobs map[digest.Digest][]byte

// contentError is an error of what an artifact holds: it is the same wherever it is
// fetched from.
type contentError struct{ error }

func wrong(format string, args ...any) error { return &contentError{fmt.Errorf(format, args...)} }

// add keeps a blob that has its digest.
func (b blobs) add(d digest.Digest, content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != d.Encoded() {
		return wrong("blob %s has the digest sha256:%s", d, got)
	}
	b[d] = content
	return nil
}

// gather reads all blobs of an artifact that are needed for its files.
func gather(ctx context.Context, from source, top digest.Digest) (blobs, error) {
	all := blobs{}
	read := func(d digest.Digest) error {
		text, err := from.manifest(ctx, d)
		if err != nil {
			return err
		}
		return all.add(d, text)
	}
	if err := read(top); err != nil {
		return nil, err
	}
	m, err := all.manifest(top, read)
	if err != nil {
		return nil, err
	}
	left := int64(maxCompressed)
	for _, l := range m.Layers {
		d := l.Digest
		if _, twice := all[d]; twice {
			continue
		}
		if left -= l.Size; l.Size < 0 || left < 0 {
			return nil, wrong("it has more than %d MiB", maxCompressed>>20)
		}
		content, err := from.layer(ctx, d, l.Size)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", d, err)
		}
		if err := all.add(d, content); err != nil {
			return nil, err
		}
	}
	return all, nil
}
