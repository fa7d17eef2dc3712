package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace"
)

// SecretError reports that an export would hold the values of secrets.
type SecretError struct {
	Run    string
	Places []Place
}

// Place is where a secret is.
type Place struct {
	// Secret says which one, for example "OPENAI_API_KEY"; File is the path in the export.
	Secret, File string
}

func (e *SecretError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s was not exported: that would give away secrets:", e.Run)
	for i, p := range e.Places {
		if i == 10 {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Places)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s is in %s", p.Secret, p.File)
	}
	return b.String()
}

// known is a secret whose value this machine has.
type known struct {
	name     string
	redactor *secret.Redactor
}

// scanner looks for known secrets in what is written.
type scanner struct {
	all    *secret.Redactor
	known  []known
	places []Place
}

// scanner knows the values of the variables and files that the runs had, of all stored keys,
// and the passwords of proxies. No program is started to get a value.
func (w *writer) scanner(ctx context.Context, below []journal.Found) (*scanner, error) {
	s := &scanner{}
	var values []secret.Value
	add := func(name string, v secret.Value) {
		values = append(values, v)
		s.known = append(s.known, known{name, secret.NewRedactor(v)})
	}
	r := secret.Resolver{Stored: keys.Lookup(w.State)}
	seen := map[[2]string]bool{}
	resolve := func(from v1alpha1.ValueFrom, name string) {
		id := [2]string{from.Env, from.File}
		if seen[id] {
			return
		}
		seen[id] = true
		if v, err := r.Resolve(ctx, name, from); err == nil { // what is not here cannot be given away
			add(name, v)
		}
	}
	for _, name := range keys.Names(w.State) {
		resolve(v1alpha1.ValueFrom{Env: name}, name)
	}
	for _, f := range below {
		for e, err := range journal.Read(ctx, f.Dir, 0) {
			if err != nil {
				return nil, err
			}
			switch d, _ := e.Data.(event.SecretResolved); d.From {
			case "env":
				resolve(v1alpha1.ValueFrom{Env: d.Name}, d.Name)
			case "file":
				resolve(v1alpha1.ValueFrom{File: d.Name}, "the value of "+d.Name)
			}
		}
	}
	for _, v := range secret.ProxyPasswords() {
		add("the password of a proxy", v)
	}
	s.all = secret.NewRedactor(values...)
	return s, nil
}

// found is the error for what was found in the export of a run.
func (s *scanner) found(run string) error {
	if len(s.places) == 0 {
		return nil
	}
	err := &reason.UsageError{Err: &SecretError{run, s.places}}
	for _, p := range s.places {
		if name, ok := strings.CutPrefix(p.File, filesName+"/"); ok {
			return err.WithHint("leave such files out: --exclude " + name)
		}
	}
	return err.WithHint("it is in what the run has recorded: replace the secret by a new one, then its old value is no longer known, and harmless")
}

// text looks at a text of a place.
func (s *scanner) text(place, text string) {
	b := []byte(text)
	if s.all == nil || !holds(s.all, b) {
		return
	}
	for _, k := range s.known {
		if p := (Place{k.name, place}); holds(k.redactor, b) && !slices.Contains(s.places, p) {
			s.places = append(s.places, p)
		}
	}
}

func holds(r *secret.Redactor, b []byte) bool {
	return len(b) > 0 && (&r.Bytes(b)[0] != &b[0] || &r.JSON(b)[0] != &b[0])
}

// Sizes of the windows in which a file is searched: each begins with the end of the one
// before it, which is more than any form of a secret takes.
const (
	window  = 1 << 20
	overlap = 256 << 10
)

// reader searches what is read through it.
func (s *scanner) reader(place string, from io.Reader) io.Reader {
	if s.all == nil {
		return from
	}
	return &searched{s: s, place: place, from: from}
}

type searched struct {
	s     *scanner
	place string
	from  io.Reader
	held  []byte
}

// Read implements io.Reader.
func (r *searched) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.held = append(r.held, b[:n]...)
	if len(r.held) >= window || err != nil {
		r.s.text(r.place, string(r.held))
		r.held = append(r.held[:0], r.held[max(0, len(r.held)-overlap):]...)
	}
	return n, err
}

// recorded are the files that an event lists.
func recorded(dir string, p event.Payload) ([]workspace.Entry, error) {
	if d, ok := p.(event.WorkspaceSnapshot); ok && d.Snapshot != "" {
		return workspace.RecordedEntries(journal.Stored(dir), d.Snapshot)
	}
	return nil, nil
}

// credential finds what git keeps of credentials in a configuration: a header, a user or a
// token in an address, or a program that has them.
var credential = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^\s*extraheader\s*=|https?://[^/\s@]+@|^\s*\[\s*credential`)
})

// noCredentials refuses a repository whose configuration holds credentials.
func noCredentials(dir string) error {
	for _, name := range []string{".git/config", ".git/config.worktree", ".git/credentials"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if name == ".git/credentials" || credential().Match(b) {
			return reason.Usagef("%s holds credentials: the repository is not exported with --git", filepath.Join(dir, name)).
				WithHint("remove them (git config --unset-all http.https://HOST/.extraheader), or leave --git out")
		}
	}
	return nil
}
