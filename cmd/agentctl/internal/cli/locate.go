package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// askTime bounds the question to a control plane whether it has a run, where the
// state folder has one that may be meant as well.
const askTime = 3 * time.Second

// runRef is what a word on the command line says about a run. Every verb reads
// the same forms, and finds the run by target.locate.
type runRef struct {
	// word as it was written.
	word string
	// name is that of a run: its id, the name of its object, a prefix of one of
	// them, or @latest. Where approval is true it is the name of an Approval.
	name     string
	approval bool
	// call is the call behind the run; "" is none.
	call string
	// file is the export that holds the run; "" is none. Only target.openRun takes it.
	file string
}

// parseRun reads NAME, run/NAME, run.agentctl.dev/NAME and approval.agentctl.dev/NAME.
func parseRun(word string) (runRef, error) {
	r, err := parseCall(word)
	if err == nil && r.call != "" {
		return runRef{}, usagef("%q names a call of a run, where a run is expected", word).try("run/" + r.name)
	}
	return r, err
}

// parseCall reads what parseRun reads, and any of it with /CALL behind.
func parseCall(word string) (runRef, error) {
	r := runRef{word: word}
	if file, call, ok := strings.Cut(word+"/", export.Suffix+"/"); ok {
		r.file, r.call = file+export.Suffix, strings.TrimSuffix(call, "/")
		r.name = r.file
		return r, nil
	}
	kind, rest, slash := strings.Cut(word, "/")
	if !slash {
		r.name = word
	} else if k, err := parseKind(kind); err != nil || k != v1alpha1.KindRun && k != v1alpha1.KindApproval {
		if r.name, r.call = kind, rest; err == nil || strings.Contains(rest, "/") {
			return runRef{}, usagef("%q is not a run: it is named run/NAME", word)
		}
	} else {
		r.approval = k == v1alpha1.KindApproval
		r.name, r.call, _ = strings.Cut(rest, "/")
	}
	switch {
	case r.name == "":
		return runRef{}, usagef("%q names no run: it is named run/NAME", word)
	case r.approval && r.call != "":
		return runRef{}, usagef("%q: an approval is for one call, which is not named", word)
	}
	return r, nil
}

// locate finds the run that a word names, wherever it is:
//
//  1. an approval leads to the run that asks;
//  2. where a flag names a control plane, there;
//  3. the id of a run of the state folder, or @latest;
//  4. the name of a Run of the control plane that is meant, if that can be asked;
//  5. runs of the state folder that were executed for a Run of that name;
//  6. the only run of the state folder whose id begins like this;
//  7. the only Run of that control plane whose name begins like this.
//
// Where several fit, the error lists them. No control plane is started, unless a
// flag names it.
func (t *target) locate(ctx context.Context, r runRef) (*source, error) {
	if r.file != "" {
		return nil, reason.Usagef("%s is the export of a run, which stays as it is", r.file).WithHint("agentctl fork " + r.file + " -f MANIFESTS begins a run from it")
	}
	f := &finder{target: t}
	s, err := f.find(ctx, r)
	if f.client != nil && (s == nil || s.client == nil) {
		f.client.Close()
	}
	return s, err
}

// locateWord is locate for a word that names a run.
func (t *target) locateWord(ctx context.Context, word string) (*source, error) {
	r, err := parseRun(word)
	if err != nil {
		return nil, err
	}
	return t.locate(ctx, r)
}

// openRun is locate for a verb that only reads: the run may be in an export, too.
func (t *target) openRun(ctx context.Context, r runRef) (*source, error) {
	if r.file == "" {
		return t.locate(ctx, r)
	}
	x, err := export.Open(ctx, r.file)
	if err != nil {
		return nil, err
	}
	return &source{place: display.Place{Away: true, Export: r.file}, state: x.State, ref: x.Run, id: x.Run, export: x}, nil
}

// openWord is openRun for a word that names a run.
func (t *target) openWord(ctx context.Context, word string) (*source, error) {
	r, err := parseRun(word)
	if err != nil {
		return nil, err
	}
	return t.openRun(ctx, r)
}

// finder keeps the connection to the control plane while a run is looked for.
type finder struct {
	*target
	client *client.Client
	state  string
}

func (f *finder) find(ctx context.Context, r runRef) (_ *source, err error) {
	if f.state, err = statedir.Find(f.app.state); err != nil {
		return nil, err
	}
	named := f.context != "" || f.namespace != ""
	if named {
		f.client, err = f.connect(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case r.approval:
		return f.asking(ctx, r)
	case named:
		return f.there(ctx, r.name)
	}
	ids, exact, err := runs.Named(f.state, r.name)
	switch {
	case err != nil:
		return nil, err
	case exact:
		return f.here(ids[0]), nil
	}
	s, err := f.exactly(ctx, r.name, len(ids) > 0)
	if s != nil || err != nil && len(ids) == 0 {
		return s, err
	}
	if own := executedFor(ids, r.name); len(own) > 0 {
		ids = own
	}
	switch {
	case len(ids) == 1:
		return f.here(ids[0]), nil
	case len(ids) > 1:
		return nil, several(r.name, "run/", ids)
	}
	if f.client == nil {
		return nil, runs.NotNamed(f.state, r.name)
	}
	s, err = f.begins(ctx, r.name)
	if _, fits := errors.AsType[*reason.UsageError](err); s != nil || fits {
		return s, err
	}
	if f.meant() {
		_, err := f.client.Get(ctx, f.ref(r.name))
		return nil, err
	}
	return nil, runs.NotNamed(f.state, r.name)
}

// here is a run of the state folder.
func (f *finder) here(id string) *source {
	return &source{place: display.Place{State: f.app.state}, state: f.state, ref: id, id: id}
}

func (f *finder) ref(name string) client.Ref {
	return client.Ref{Kind: v1alpha1.KindRun, Namespace: f.namespace, Name: name}
}

// there finds a run at the control plane that a flag names. What that does not let
// the caller read is left to the verb.
func (f *finder) there(ctx context.Context, name string) (*source, error) {
	if name != runs.Latest {
		x, err := f.client.Get(ctx, f.ref(name))
		if !client.Missing(err) {
			return f.object(f.client, name, x), nil
		}
		s, listed := f.begins(ctx, name)
		if _, fits := errors.AsType[*reason.UsageError](listed); s == nil && !fits {
			return nil, err // what is wrong with the list helps less
		}
		return s, listed
	}
	s, err := f.begins(ctx, name)
	if s == nil && err == nil {
		err = reason.Usagef("run %q: there are no runs in namespace %s", name, f.client.Namespace(f.namespace))
	}
	return s, err
}

// exactly finds the Run of a name at the control plane that is meant, if it runs.
// Where the state folder has runs that may be meant, one that does not answer is
// not waited for, and its error is not one of the verb.
func (f *finder) exactly(ctx context.Context, name string, maybe bool) (*source, error) {
	if maybe {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if errors.Is(err, client.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f.client = c
	if name == runs.Latest {
		return f.begins(ctx, name)
	}
	x, err := c.Get(ctx, f.ref(name))
	switch {
	case client.Missing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return f.object(c, name, x), nil
}

// begins finds the only Run whose name begins like this, or the newest of all for
// @latest; nil is none.
func (f *finder) begins(ctx context.Context, name string) (*source, error) {
	all, _, err := f.client.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, Namespace: f.namespace})
	if err != nil {
		return nil, err
	}
	if name == runs.Latest {
		var newest client.Object
		for _, x := range all {
			if newest == nil || !x.Created().Before(newest.Created()) {
				newest = x
			}
		}
		if newest == nil {
			return nil, nil
		}
		return f.object(f.client, newest.Name(), newest), nil
	}
	all = slices.DeleteFunc(all, func(x client.Object) bool { return !strings.HasPrefix(x.Name(), name) })
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return f.object(f.client, all[0].Name(), all[0]), nil
	}
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.Name()
	}
	slices.Sort(names)
	return nil, several(name, "run/", names)
}

// asking finds the run that asks for an approval.
func (f *finder) asking(ctx context.Context, r runRef) (*source, error) {
	if f.client == nil {
		config, err := f.config()
		if err != nil {
			return nil, err
		}
		f.client, err = config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
		if errors.Is(err, client.ErrNotRunning) {
			return nil, reason.Usagef("approval %q: no control plane runs that could have it", r.name).WithHint("agentctl approve lists the calls that wait in the state folder")
		}
		if err != nil {
			return nil, err
		}
	}
	x, err := f.client.Get(ctx, client.Ref{Kind: v1alpha1.KindApproval, Namespace: f.namespace, Name: r.name})
	if err != nil {
		return nil, err
	}
	a, err := approvalOf(x)
	if err != nil {
		return nil, err
	}
	run, err := f.client.Get(ctx, f.ref(a.Spec.RunRef.Name))
	if err != nil {
		return nil, err
	}
	s := f.object(f.client, a.Spec.RunRef.Name, run)
	s.call = a.Spec.Call
	return s, nil
}

// object is a run of a control plane as a source. Its journal may be in this
// state folder.
func (t *target) object(c *client.Client, name string, x client.Object) *source {
	e := c.Endpoint()
	s := &source{client: c, run: client.Ref{Kind: v1alpha1.KindRun, Namespace: t.namespace, Name: name}, seen: x}
	s.place = display.Place{State: t.app.state, Object: name, Namespace: t.namespace, Home: c.Namespace(t.namespace), Context: t.context, Away: !e.Local}
	s.state, _ = statedir.Find(t.app.state) // it was found before
	if path := x.Text("status", "journal", "path"); path != "" && filepath.Dir(path) == filepath.Join(s.state, "runs") {
		s.id = filepath.Base(path)
	}
	return s
}

// local is the id of a run whose journal is in the state folder; of any other the
// error says where it is.
func (s *source) local(verb string) (string, error) {
	switch path := s.seen.Text("status", "journal", "path"); {
	case s.id != "":
		return s.id, nil
	case path != "":
		return "", reason.Usagef("%s: its journal is %s on the machine of its control plane", s.run, path).
			WithHint("run there: agentctl " + verb + " run/" + filepath.Base(path))
	}
	return "", reason.Usagef("%s has no journal yet: it has not begun", s.run).WithHint("agentctl describe " + s.run.String() + " shows what it waits for")
}

// executedFor are those of some ids that a control plane gave to the runs of an
// object; of several attempts of one object the newest.
func executedFor(ids []string, object string) (own []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		name, ok := objectOf(id)
		if !ok || name != object {
			continue
		}
		if uid := uidOf(id, name); !seen[uid] {
			seen[uid] = true
			own = append(own, id)
		}
	}
	return own
}

// uidOf is the uid of the object in the id of its run.
func uidOf(id, object string) string {
	const size = len("00000000-0000-0000-0000-000000000000")
	rest := strings.TrimPrefix(id, object+"-")
	return rest[:min(len(rest), size)]
}

// several is the error for a name that means more than one run.
func several(name, prefix string, candidates []string) error {
	shown := make([]string, 0, maxNamed)
	for _, c := range candidates[:min(len(candidates), maxNamed)] {
		shown = append(shown, prefix+c)
	}
	text := strings.Join(shown, ", ")
	if more := len(candidates) - len(shown); more > 0 {
		text += ", …"
	}
	return reason.Usagef("run %q: %d runs begin like this: %s", name, len(candidates), text).WithHint("name one of them")
}

// owner finds the object that a run of the state folder is executed for, while its
// control plane runs; nil is none.
func (t *target) owner(ctx context.Context, id string) *source {
	name, ok := objectOf(id)
	if !ok {
		return nil
	}
	config, err := t.config()
	if err != nil {
		return nil
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if err != nil {
		return nil
	}
	all, _, _ := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, AllNamespaces: true, Fields: "metadata.name=" + name}) // without it the verb says what is wrong
	for _, x := range all {
		if x.Text("metadata", "uid") == uidOf(id, name) {
			in := *t
			in.namespace = x.Namespace()
			return in.object(c, name, x)
		}
	}
	c.Close()
	return nil
}
