package embedded

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// tokenBytes is how many random bytes a token has.
	tokenBytes = 32
	// tokenPrefix lets scanners for secrets recognize a token.
	tokenPrefix = "agentd_"
	// maxTokensFile bounds the file of the tokens.
	maxTokensFile = 4 << 20
)

// Errors of Tokens, besides those of the file.
var (
	ErrTokenExists  = errors.New("there is a token of this name")
	ErrTokenUnknown = errors.New("there is no token of this name")
)

// Tokens is the file of the identities of a control plane. Programs may change
// it while a server reads it: the server notices with the next request.
type Tokens struct {
	path string
	now  func() time.Time

	mu     sync.RWMutex
	seen   os.FileInfo
	byHash map[string]*user.DefaultInfo
}

// OpenTokens opens the identities of the control plane of a state folder, which
// need not exist yet. now is the clock; nil is time.Now.
func OpenTokens(state string, now func() time.Time) (*Tokens, error) {
	dir, err := privateFolder(state)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now //nolint:forbidigo // the default of the clock
	}
	return &Tokens{path: filepath.Join(dir, tokensFile), now: now}, nil
}

// List returns the identities in the order of their names.
func (t *Tokens) List() ([]Identity, error) {
	records, err := t.read()
	if err != nil {
		return nil, err
	}
	ids := make([]Identity, len(records))
	for i, r := range records {
		ids[i] = r.Identity
	}
	return ids, nil
}

// Create makes an identity and returns its token, which is not stored.
func (t *Tokens) Create(ctx context.Context, id Identity) (token string, err error) {
	if err := id.check(); err != nil {
		return "", err
	}
	err = t.change(ctx, func(records []record) ([]record, error) {
		if slices.ContainsFunc(records, func(r record) bool { return r.Name == id.Name }) {
			return nil, fmt.Errorf("token %q: %w", id.Name, ErrTokenExists)
		}
		token = newToken()
		id.Created = t.now().UTC().Truncate(time.Second)
		return append(records, record{id, hash(token)}), nil
	})
	return token, err
}

// Rotate makes a new token for an identity. The old one is invalid for every
// new request, and its long-running requests end within a minute. An empty role
// keeps the role.
func (t *Tokens) Rotate(ctx context.Context, name string, role Role) (token string, err error) {
	err = t.change(ctx, func(records []record) ([]record, error) {
		i := slices.IndexFunc(records, func(r record) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("token %q: %w", name, ErrTokenUnknown)
		}
		id := records[i].Identity
		if role != "" {
			id.Role = role
		}
		if err := id.check(); err != nil {
			return nil, err
		}
		token = newToken()
		id.Created = t.now().UTC().Truncate(time.Second)
		records[i] = record{id, hash(token)}
		return records, nil
	})
	return token, err
}

// Revoke removes an identity. Its token is invalid for every new request, and
// its long-running requests end within a minute.
func (t *Tokens) Revoke(ctx context.Context, name string) error {
	return t.change(ctx, func(records []record) ([]record, error) {
		kept := slices.DeleteFunc(records, func(r record) bool { return r.Name == name })
		if len(kept) == len(records) {
			return nil, fmt.Errorf("token %q: %w", name, ErrTokenUnknown)
		}
		return kept, nil
	})
}

// ensure returns a token of an identity: the given token if it is valid, else a
// new one.
func (t *Tokens) ensure(ctx context.Context, id Identity, token string) (string, error) {
	if u, err := t.user(token); err != nil {
		return "", err
	} else if u != nil && u.Name == id.Name && slices.Contains(u.Groups, rolePrefix+string(id.Role)) {
		return token, nil
	}
	token, err := t.Rotate(ctx, id.Name, id.Role)
	if errors.Is(err, ErrTokenUnknown) {
		return t.Create(ctx, id)
	}
	return token, err
}

// AuthenticateToken returns the user of a token; it makes Tokens an
// authenticator.
func (t *Tokens) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	u, err := t.user(token)
	if err != nil || u == nil {
		return nil, false, err
	}
	return &authenticator.Response{User: &bearer{u, hash(token)}}, true, nil
}

func (t *Tokens) user(token string) (*user.DefaultInfo, error) {
	known, err := t.known()
	if err != nil {
		return nil, err
	}
	// The lookup is by hash, so its time reveals nothing about a token.
	return known[hash(token)], nil
}

// known returns the users by the hash of their token. It reads the file again
// when it is another file: the file is only ever replaced as a whole.
func (t *Tokens) known() (map[string]*user.DefaultInfo, error) {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the tokens: %w", err)
	}
	t.mu.RLock()
	byHash, fresh := t.byHash, t.seen != nil && same(t.seen, info)
	t.mu.RUnlock()
	if fresh {
		return byHash, nil
	}
	records, err := t.read()
	if err != nil {
		return nil, err
	}
	byHash = make(map[string]*user.DefaultInfo, len(records))
	for _, r := range records {
		byHash[r.SHA256] = r.user()
	}
	t.mu.Lock()
	t.byHash, t.seen = byHash, info
	t.mu.Unlock()
	return byHash, nil
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func newToken() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails: without random numbers the program ends
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
