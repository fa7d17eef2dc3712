// Package keys keeps the values of keys for who has none in the environment, and tells of keys without their values.
package keys

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// The places in which the key of a name can be.
const (
	Stored      = "stored"
	Environment = "environment"
	// Both means that the environment wins.
	Both = "both"
)

// Key is what is told of a key: never its value.
type Key struct {
	// Name is that of an environment variable; valueFrom.env takes it.
	Name string `json:"name"`
	// Source is where its value is: stored, environment or both.
	Source string `json:"source"`
	// Set is when it was stored; nil where it was not.
	Set *time.Time `json:"set"`
	// Problem is why the stored value cannot be used, or "".
	Problem string `json:"problem"`
}

// CheckName says what is wrong with the name of a key, without repeating it.
func CheckName(name string) error {
	if err := checkName(name); err != nil {
		return &reason.UsageError{Err: err}
	}
	return nil
}

// Set stores the value that a name has where the environment does not set it.
// One final line break of the value is no part of it.
func Set(state, name string, value []byte) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, err := clean(value); err != nil {
		return reason.Usagef("%s: %w", name, err)
	}
	return explained(store(state).Set(name, string(value)))
}

// List returns the names that have a stored value, and those of some variables
// that the environment sets.
func List(state string, variables []string) ([]Key, error) {
	stored, err := store(state).List()
	if err != nil {
		return nil, explained(err)
	}
	keys := []Key{}
	for _, e := range stored {
		k := Key{Name: e.Name, Source: Stored, Set: &e.Set}
		if _, set := os.LookupEnv(e.Name); set {
			k.Source = Both
		}
		if e.Problem != nil {
			k.Problem = withHint(e.Problem)
		}
		keys = append(keys, k)
	}
	for _, name := range variables {
		_, set := os.LookupEnv(name)
		if set && !slices.ContainsFunc(keys, func(k Key) bool { return k.Name == name }) {
			keys = append(keys, Key{Name: name, Source: Environment})
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys, nil
}

// Remove forgets the stored value of a name.
func Remove(state, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	store := store(state)
	err := store.Remove(name)
	if !errors.Is(err, errNotStored) {
		return explained(err)
	}
	missing := reason.Usagef("there is no stored value of %s", name)
	if _, set := os.LookupEnv(name); set {
		return missing.WithHint("the environment sets it: unset " + name)
	}
	if near := reason.Nearest(name, Names(state)); near != "" {
		return missing.WithHint("did you mean " + near + "?")
	}
	return missing.WithHint("see agentctl auth list")
}

// Names are the names that have a stored value; none where that cannot be
// told.
func Names(state string) []string {
	stored, _ := store(state).List() // who asks shows what there is
	var names []string
	for _, e := range stored {
		names = append(names, e.Name)
	}
	return names
}

func store(state string) keystore {
	return keystore{Dir: filepath.Join(state, "credentials")}
}

// Lookup returns what answers for the environment where it does not set a name.
func Lookup(state string) func(name string) (string, bool, error) {
	return func(name string) (string, bool, error) {
		storable := checkName(name) == nil
		if !storable {
			return "", false, nil
		}
		value, found, err := store(state).Get(name)
		return value, found, explained(err)
	}
}

// explained gives an error of the store the reason and the hint that it is shown
// with.
func explained(err error) error {
	if err == nil {
		return nil
	}
	told := reason.New(reason.CredentialMissing, "%w", err)
	if p, ok := errors.AsType[*StoreError](err); ok && p.Hint != "" {
		return told.WithHint("%s", p.Hint)
	}
	return told
}

func withHint(err error) string {
	if p, ok := errors.AsType[*StoreError](err); ok && p.Hint != "" {
		return p.Error() + ": " + p.Hint
	}
	return err.Error()
}
