package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agentctl.dev/agentctl/api/reason"
)

// lockWait is how often a lock that another process holds is tried again.
const lockWait = 20 * time.Millisecond

// Logins keeps what the login of a person at a server has obtained, as one document of
// one line for each, in the folder logins of the state folder. Documents are kept as
// values are: for the owner alone, and each is written as a whole or not at all.
type Logins struct{ store keystore }

// LoginsOf returns the logins of a state folder.
func LoginsOf(state string) Logins {
	return Logins{keystore{Dir: filepath.Join(state, "logins")}}
}

// Get returns a document; false reports that there is none.
func (l Logins) Get(name string) (document string, found bool, err error) {
	document, found, err = l.store.Get(name)
	return document, found, explained(err)
}

// Set keeps a document, in place of an earlier one.
func (l Logins) Set(name, document string) error { return explained(l.store.Set(name, document)) }

// Remove forgets a document. One that is not there is not an error.
func (l Logins) Remove(name string) error {
	err := l.store.Remove(name)
	if errors.Is(err, errNotStored) {
		return nil
	}
	return explained(err)
}

// Names are those of all documents.
func (l Logins) Names() ([]string, error) {
	all, err := l.store.List()
	if err != nil {
		return nil, explained(err)
	}
	names := make([]string, 0, len(all))
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names, nil
}

// Lock waits until no other process changes a document, at most until ctx ends. The
// system releases the lock of a process that is killed.
func (l Logins) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.store.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the logins: %w", err)
	}
	root, err := l.store.open() // refuses a folder that others can change
	if err != nil {
		return nil, explained(err)
	}
	_ = root.Close() // nothing was done in it
	f := flock.New(filepath.Join(l.store.Dir, "."+name+".lock"),
		flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK), flock.SetPermissions(0o600))
	if _, err := f.TryLockContext(ctx, lockWait); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, reason.New(reason.Internal, "wait for another process that renews the login: %w", err)
	}
	return func() { _ = f.Unlock() }, nil // closing releases it in any case
}
