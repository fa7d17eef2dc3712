// Package publish sends what a run has prepared for publication, after the run.
package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/publish/delivery"
	"agentctl.dev/agentctl/runner/publish/github"
	"agentctl.dev/agentctl/runner/publish/gitlab"
	"agentctl.dev/agentctl/runner/publish/webhook"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// Options name the run whose items are published. Ref and Paths are required.
type Options struct {
	// Ref is the run as runs.View takes it, State the folder that holds runs.
	Ref, State string
	// Paths are the manifests as they are now: files, folders, or "-" (Stdin). Their policies
	// judge each item, besides those of the run.
	Paths []string
	Stdin io.Reader
	// By is who publishes, for the journal of the run: for example "jane@pts/3".
	By string
	// Digest is that of a Plan: exactly what it lists is sent, also what the policies ask
	// about. "": what the policies allow is sent.
	Digest string

	// sleep waits before another attempt; nil waits by the clock.
	sleep func(context.Context, time.Duration) error
}

// Prepared is the state of an item that nobody has published.
const Prepared event.PublishState = "prepared"

// Plan is what would be sent, or was.
type Plan struct {
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// Digest is over the head of the run's journal, and all items with their targets.
	Digest string `json:"digest"`
	Items  []Item `json:"items"`
}

// Item is one item.
type Item struct {
	// Call is the id of the call that has prepared it.
	Call string `json:"call"`
	Name string `json:"name"`
	// Type is Comment, PullRequest or Webhook.
	Type   string `json:"type"`
	Target string `json:"target"`
	// Key by which the target recognises it.
	Key string `json:"key"`
	// Hash is over the item and its target.
	Hash string `json:"hash"`
	// Decision of the policies as they are now, with the rule.
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason"`
	Title    string         `json:"title"`
	// Text is what is sent: Markdown, or the JSON of a Webhook.
	Text string `json:"text"`
	// Files that a pull request changes.
	Files []string `json:"files"`
	// State is prepared, begun, sent, found or failed.
	State event.PublishState `json:"state"`
	URL   string             `json:"url"`
	Error string             `json:"error"`

	declared v1alpha1.Publication
	item     delivery.Item
}

// done reports whether the target has the item.
func (i *Item) done() bool { return i.State == event.PublishSent || i.State == event.PublishFound }

// Show returns what Send would do. Nothing is sent, and no credential is read.
func Show(ctx context.Context, o Options) (*Plan, error) {
	found, err := find(&o)
	if err != nil {
		return nil, err
	}
	return o.plan(ctx, found)
}

// find returns the folder of the run.
func find(o *Options) (journal.Found, error) {
	if len(o.Paths) == 0 {
		return journal.Found{}, reason.Usagef("no manifests are named: what a run has prepared is judged by the policies as they are now").WithHint("name a file or a folder with -f")
	}
	var err error
	if o.State, err = statedir.Find(o.State); err != nil {
		return journal.Found{}, err
	}
	found, err := journal.FindRun(o.State, o.Ref)
	if err != nil {
		return found, &reason.UsageError{Err: err}
	}
	return found, nil
}

// Send publishes the items of a run that are not published: all of them are judged first,
// and if one is refused nothing is sent. Each is recorded before it is sent and afterwards,
// so that an interrupted Send is continued by the next. If an item fails, the others are sent;
// the error is that of the first.
//
//	the journal was changed, or has another digest  an error; nothing is sent
//	another process writes the journal              a *reason.UsageError; nothing is sent
//	a policy denies an item, or asks without Digest reason Denied or ApprovalRequired; nothing is sent
//	a credential is missing, or is in an item       reason CredentialMissing or Denied; nothing is sent
func Send(ctx context.Context, o Options) (_ *Plan, err error) {
	found, err := find(&o)
	if err != nil {
		return nil, err
	}
	if _, err := o.plan(ctx, found); err != nil { // before anything is locked
		return nil, err
	}
	w, _, err := trail.Open(ctx, journal.Options{Dir: found.Dir, Run: found.ID})
	if held, ok := errors.AsType[*journal.HeldError](err); ok {
		return nil, (&reason.UsageError{Err: held}).WithHint("wait until it has ended, then publish again")
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: nothing is published, because that cannot be recorded: %w", found.ID, err)
	}
	defer func() {
		if closed := w.Close(); err == nil && closed != nil {
			err = reason.New(reason.Internal, "run %s: what was published is not recorded: %w", found.ID, closed)
		}
	}()
	p, err := o.plan(ctx, found) // what counts is what is there while nobody else writes
	if err != nil {
		return nil, err
	}
	if o.Digest != "" && o.Digest != p.Digest {
		return nil, reason.New(reason.Denied, "run %s: what would be published is %s, not %s", p.Run, p.Digest, o.Digest).WithHint("look at it again: agentctl apply-changes run/%s --publish -f FILE", p.Run)
	}
	if err := p.permitted(o.Digest != ""); err != nil {
		return nil, err
	}
	tokens, err := o.credentials(ctx, p)
	if err != nil {
		return nil, err
	}
	s := sending{Options: &o, plan: p, journal: w, tokens: tokens}
	return p, s.all(ctx)
}

// permitted returns why nothing is sent.
func (p *Plan) permitted(approved bool) error {
	for i := range p.Items {
		it := &p.Items[i]
		switch {
		case it.done() || it.Decision == message.Allow || it.Decision == message.Ask && approved:
		case it.Decision == message.Ask:
			return reason.New(reason.ApprovalRequired, "run %s: %s needs an approval (%s): nothing is sent", p.Run, it.Name, it.Rule).
				WithHint("approve exactly what is shown: --yes --digest %s", p.Digest)
		default:
			return reason.New(reason.Denied, "run %s: %s is denied (%s)%s: nothing is sent", p.Run, it.Name, it.Rule, colon(it.Reason))
		}
	}
	return nil
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// credentials reads those of the items that are to be sent, by the names of the entries. An
// item that holds one is refused.
func (o *Options) credentials(ctx context.Context, p *Plan) (tokens map[string]secret.Value, err error) {
	host := environment.NewHost(environment.HostOptions{Kinds: sources.All(), State: o.State})
	defer func() { err = errors.Join(err, host.Close()) }()
	tokens = map[string]secret.Value{}
	values := secret.ProxyPasswords()
	for i := range p.Items {
		it := &p.Items[i]
		if _, known := tokens[it.Name]; known || it.done() || it.declared.Credential == nil {
			continue
		}
		v, err := host.Secret(ctx, fmt.Sprintf("agent %q: spec.publish %s: credential", p.Agent, it.Name), it.declared.Credential.ValueFrom)
		if err != nil {
			return nil, err
		}
		tokens[it.Name] = v
		values = append(values, v)
	}
	hide := secret.NewRedactor(values...)
	for i := range p.Items {
		it := &p.Items[i]
		if !it.done() && holds(hide, it) {
			return nil, reason.New(reason.Denied, "run %s: %s holds a credential: nothing is sent", p.Run, it.Name)
		}
	}
	return tokens, nil
}

// holds reports whether what is sent holds a secret.
func holds(hide *secret.Redactor, it *Item) bool {
	texts := []string{it.Title, it.Text}
	for i := range it.item.Files {
		texts = append(texts, it.item.Files[i].Path, string(it.item.Files[i].Content))
	}
	for _, text := range texts {
		if hide.String(text) != text || string(hide.JSON([]byte(text))) != text {
			return true
		}
	}
	return false
}

// sending is a Send whose items may be sent.
type sending struct {
	*Options
	plan    *Plan
	journal *journal.Writer
	tokens  map[string]secret.Value
}

func (s *sending) all(ctx context.Context) error {
	var failed error
	for i := range s.plan.Items {
		it := &s.plan.Items[i]
		if it.done() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return reason.New(reason.Cancelled, "run %s: stopped before %s: %w", s.plan.Run, it.Name, context.Cause(ctx)).WithHint("%s", s.again())
		}
		err := s.one(ctx, it)
		if _, recorded := errors.AsType[*unrecordedError](err); recorded {
			return reason.New(reason.Internal, "run %s: %s: %w", s.plan.Run, it.Name, err).WithHint("remove the cause; then %s", s.again())
		}
		if err != nil && failed == nil {
			failed = reason.New(reason.Internal, "run %s: %s is not published: %w", s.plan.Run, it.Name, err).WithHint("remove the cause; then %s", s.again())
		}
	}
	return failed
}

func (s *sending) again() string {
	return "send what is left: agentctl apply-changes run/" + s.plan.Run + " --publish -f FILE --yes"
}

// unrecordedError is the end of a Send that cannot record what it does.
type unrecordedError struct{ error }

func (e *unrecordedError) Unwrap() error { return e.error }

// one sends one item, between two durable events.
func (s *sending) one(ctx context.Context, it *Item) error {
	if err := s.record(it, event.PublishBegun); err != nil {
		return err
	}
	done, err := s.deliver(ctx, it)
	if err != nil {
		it.Error = err.Error()
		return errors.Join(err, s.record(it, event.PublishFailed))
	}
	state := event.PublishSent
	if done.Found {
		state = event.PublishFound
	}
	it.URL, it.Error = done.URL, ""
	return s.record(it, state)
}

func (s *sending) deliver(ctx context.Context, it *Item) (delivery.Outcome, error) {
	client, err := delivery.NewClient(it.item.Target, s.tokens[it.Name])
	if err != nil {
		return delivery.Outcome{}, err
	}
	defer client.Close()
	to := webhook.New(client)
	switch it.item.Target.Forge {
	case v1alpha1.ForgeGitHub:
		to = github.New(client)
	case v1alpha1.ForgeGitLab:
		to = gitlab.New(client)
	}
	wait := s.sleep
	if wait == nil {
		wait = sleep
	}
	return delivery.Deliver(ctx, to, &it.item, wait)
}

// record makes the state of an item durable.
func (s *sending) record(it *Item, state event.PublishState) error {
	it.State = state
	_, err := s.journal.Append(event.Event{Call: it.Call, Data: event.PublishItem{
		Name: it.Name, Kind: it.Type, Target: it.Target, Key: it.Key, Item: it.Hash, State: state, URL: it.URL, Error: it.Error, By: cmp.Or(s.By, "unknown"),
	}})
	if err == nil {
		err = s.journal.Sync()
	}
	if err != nil {
		return &unrecordedError{fmt.Errorf("record that it is %s: %w", state, err)}
	}
	return nil
}

// sleep waits by the clock.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// data is JSON for a person who looks at what is sent.
func data(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(b)
}
