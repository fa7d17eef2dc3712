package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/statedir"
)

// tokenFile is the text of the file.
type tokenFile struct {
	Tokens []record `json:"tokens"`
}

func (t *Tokens) read() ([]record, error) {
	f, err := statedir.OpenFile(t.path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusable(t.path, fmt.Errorf("open the tokens: %w", err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at the tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, hinted(fmt.Errorf("%s has mode %#o: others may read or change it", t.path, info.Mode().Perm()), "chmod 600 "+t.path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokensFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	if len(text) > maxTokensFile {
		return nil, fmt.Errorf("%s has more than %d bytes", t.path, maxTokensFile)
	}
	var file tokenFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, hinted(fmt.Errorf("%s is damaged: %w", t.path, err), "remove it: all tokens are void then, and the kubeconfig gets a new one with the next start")
	}
	for _, r := range file.Tokens {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.path, err)
		}
	}
	return file.Tokens, nil
}

// change reads the file, lets f change its contents, and replaces it; a lock
// serializes the changes of several programs.
func (t *Tokens) change(ctx context.Context, f func([]record) ([]record, error)) error {
	l := newLock(t.path + ".lock")
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := l.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return unusable(l.Path(), fmt.Errorf("lock the tokens: %w", err))
	}
	defer l.Unlock() //nolint:errcheck // closing the file releases it in any case
	records, err := t.read()
	if err != nil {
		return err
	}
	if records, err = f(records); err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b record) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(tokenFile{records}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the tokens: %w", err)
	}
	return writePrivate(t.path, append(text, '\n'))
}

// record is an identity with what is kept of its token: a hash. A token has 256
// random bits, so a plain hash is as good as a slow one.
type record struct {
	Identity
	SHA256 string `json:"sha256"`
}
