package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// Sign makes the signed receipt of the run in dir, which must have ended.
func Sign(ctx context.Context, dir string, by Signer) ([]byte, error) {
	s, err := Statement(ctx, dir)
	if err != nil {
		return nil, err
	}
	return seal(ctx, s, by)
}

// maxRefused bounds the refused calls that a receipt names.
const maxRefused = 1000

// Statement makes the statement of the run in dir, which must have ended, from its journal:
// up to the end of the run, and not what was done with its change later.
//
//	the run                      the error
//	has ended                    nil
//	goes on, waits, was killed   a *reason.UsageError
//	has a changed journal        that of journal.Check
func Statement(ctx context.Context, dir string) (*audit.Statement, error) {
	return statement(ctx, dir, 0)
}

// statement is Statement for the end that has a number; 0 is the newest. Of a run that went
// on after it, what came later is left out.
func statement(ctx context.Context, dir string, end int64) (*audit.Statement, error) {
	w := &collector{dir: dir, log: sha256.New(), until: end}
	w.projection = trail.NewProjection(w.record)
	report, err := journal.Check(ctx, dir, w.line)
	if err != nil {
		return nil, err
	}
	if w.end == nil {
		state := "has not ended"
		if w.phase == view.Suspended {
			state = "waits for an approval"
		}
		return nil, reason.Usagef("run %s %s: a receipt is about a run that has ended", report.Run, state).WithHint("agentctl get run/" + report.Run + " shows its state")
	}
	if w.head == "" {
		w.head = report.Head
	}
	return w.statement()
}

// collector takes what a receipt says from the events of a run.
type collector struct {
	dir        string
	until      int64
	projection *trail.Projection
	// behind are the lines behind the end so far.
	behind  []journal.Line
	log     hash.Hash
	size    int64
	records int64
	buf     []byte

	started  event.RunStarted
	at       string
	attempts int
	prices   []event.ModelPrice
	patch    event.WorkspacePatch
	applied  bool
	models   []audit.ReceiptModel
	r        audit.Receipt

	phase    string
	end      *event.RunFinished
	endedAt  string
	evidence json.RawMessage
	seq      int64
	head     string
}

// line takes one event. The hash of the event that ends the run is known with the next line.
func (w *collector) line(l journal.Line) error {
	if w.end != nil {
		if w.head == "" {
			w.head = l.Prev
		}
		return w.later(l)
	}
	if err := w.projection.Line(l.Text); err != nil {
		return err
	}
	switch event.Type(l.Type) {
	case event.TypeWarning:
		w.r.Journal.Damaged = w.r.Journal.Damaged || bytes.Contains(l.Text, []byte(damagedWarning))
		return nil
	case event.TypeRunStarted, event.TypeRunResumed, event.TypeRunFinished, event.TypeModelResponse, event.TypeContextCompaction, event.TypeWorkspacePatch, event.TypeWorkspaceApplied:
	default:
		return nil
	}
	var e event.Event
	if err := e.UnmarshalJSON(l.Text); err != nil {
		return err
	}
	at := e.Time.UTC().Format(event.TimeFormat)
	switch d := e.Data.(type) {
	case event.RunStarted:
		w.started, w.at, w.attempts, w.prices = d, at, 1, slices.Clone(d.Prices)
		w.r.Run.ID = e.Run
	case event.RunResumed:
		w.attempts, w.started = d.Attempt, w.started.InTurn(d)
		if d.Turn != nil && d.Turn.Fresh {
			w.patch = event.WorkspacePatch{}
		}
		w.prices = append(w.prices, d.Prices...)
	case event.ModelResponse:
		w.answered(d.Model, d.Tokens)
	case event.ContextCompaction:
		w.answered(d.Model, d.Tokens)
	case event.WorkspacePatch:
		w.patch = d
	case event.WorkspaceApplied:
		w.applied = w.applied || d.By == ""
	case event.RunFinished:
		if w.phase = d.Phase; d.Phase == view.Suspended {
			return nil
		}
		w.end, w.endedAt, w.seq = &d, at, e.Seq
		var raw struct {
			Data struct {
				Evidence json.RawMessage `json:"evidence"`
			} `json:"data"`
		}
		if err := json.Unmarshal(l.Text, &raw); err != nil {
			return err
		}
		w.evidence = bytes.Clone(raw.Data.Evidence)
	}
	return nil
}

// later takes a line behind the end. If the run went on, it belongs to the run.
func (w *collector) later(l journal.Line) error {
	if w.until == w.seq {
		return nil
	}
	kept := l
	kept.Text = bytes.Clone(l.Text)
	kept.Type = bytes.Clone(l.Type)
	if w.behind = append(w.behind, kept); event.Type(l.Type) != event.TypeRunResumed {
		return nil
	}
	all := w.behind
	w.behind, w.end, w.head, w.applied = nil, nil, "", false
	for _, one := range all {
		if err := w.line(one); err != nil {
			return err
		}
	}
	return nil
}

func (w *collector) answered(by message.ModelRef, tokens message.Usage) {
	i := slices.IndexFunc(w.models, func(m audit.ReceiptModel) bool { return m.ModelRef == by })
	if i < 0 {
		i, w.models = len(w.models), append(w.models, audit.ReceiptModel{ModelRef: by})
	}
	m := &w.models[i]
	m.Answers++
	sum := message.Usage(m.Tokens).Add(tokens)
	m.Tokens = audit.ReceiptTokens(sum)
}

// record takes a record of the audit log.
func (w *collector) record(r audit.Record) (err error) {
	if w.buf, err = audit.Append(w.buf[:0], r); err != nil {
		return err
	}
	_, _ = w.log.Write(w.buf) // never fails
	w.size += int64(len(w.buf))
	w.records++
	switch d := r.Details.(type) {
	case audit.Approval:
		w.r.Approvals = append(w.r.Approvals, audit.ReceiptApproval{
			ID: d.ApprovalID, Call: d.CallID, Tool: d.Tool, State: d.State, By: d.By, Scope: d.Scope, Rule: d.Rule, Risk: d.RiskLevel, DecidedAt: r.Timestamp,
		})
	case audit.Call:
		w.refused(d)
	case audit.Finished:
		c := d.Calls
		w.r.Decisions.Allow, w.r.Decisions.Ask, w.r.Decisions.Deny, w.r.Decisions.Redact = c.Allow, c.Ask, c.Deny, c.Redact
	}
	return nil
}

func (w *collector) refused(c audit.Call) {
	denied := c.Error == string(message.CodeDenied) || c.Error == string(message.CodeRejected)
	d := &w.r.Decisions
	switch {
	case !denied || c.Attempt > 0 || c.Decision == nil:
	case len(d.Refused) == maxRefused:
		d.Omitted++
	default:
		d.Refused = append(d.Refused, audit.RefusedCall{Call: c.CallID, Tool: c.Tool, Decision: *c.Decision, Rule: c.Rule, Source: c.RuleSource, Risk: c.RiskLevel})
	}
}

// statement completes the statement of a run that has ended.
func (w *collector) statement() (*audit.Statement, error) {
	s, f, r := &w.started, w.end, &w.r
	r.Run = audit.ReceiptRun{
		ID: r.Run.ID, Agent: s.Agent, User: s.User, Version: s.Version, Attempts: w.attempts, StartedAt: w.at, FinishedAt: w.endedAt, DurationMs: f.DurationMs, Steps: f.Steps,
		Isolation: s.Isolation, Strategy: s.Workspace.Strategy,
	}
	if p := s.Parent; p != nil {
		r.Run.Parent = &audit.Parent{Run: p.Run, Call: p.Call, Root: p.Root}
	}
	if g := s.Workspace.Git; g != nil {
		r.Run.GitURL, r.Run.GitCommit = publicURL(g.URL), g.Commit
	}
	var err error
	if r.Manifests, r.PolicySet, err = digests(w.dir, s.Plan); err != nil {
		return nil, err
	}
	r.Models, r.PriceBasis, r.Cost, r.Evidence = w.models, w.prices, f.Cost, w.evidence
	r.Tokens = audit.ReceiptTokens(f.Tokens)
	r.Journal.Events, r.Journal.Head.SHA256 = w.seq, strings.TrimPrefix(w.head, hashPrefix)
	if w.projection.Kept() {
		r.AuditLog = &audit.LogDigest{Records: w.records, Bytes: w.size, Digest: audit.Digest{SHA256: hex.EncodeToString(w.log.Sum(nil))}}
	}
	r.Exit = audit.Exit{Phase: f.Phase, Reason: f.Reason, ExitCode: f.ExitCode}
	subjects, err := w.subjects()
	if err != nil {
		return nil, err
	}
	lists(r)
	return &audit.Statement{Type: audit.StatementType, Subject: subjects, PredicateType: audit.PredicateType, Predicate: *r}, nil
}

// lists makes what is empty a list: readers need not know of another form.
func lists(r *audit.Receipt) {
	if r.Decisions.Refused == nil {
		r.Decisions.Refused = []audit.RefusedCall{}
	}
	if r.Approvals == nil {
		r.Approvals = []audit.ReceiptApproval{}
	}
	if r.Models == nil {
		r.Models = []audit.ReceiptModel{}
	}
	if r.PriceBasis == nil {
		r.PriceBasis = []event.ModelPrice{}
	}
}

func publicURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "" // it cannot be known what is in it
	}
	u.User = nil
	return u.String()
}

// subjects are the files that the run has left, by the names that its event has: these hold
// no secrets, the names in the change may.
func (w *collector) subjects() ([]audit.Subject, error) {
	c, p := &w.r.Changes, &w.patch
	c.Applied, c.Error, c.Omitted = w.applied, p.Error, p.Omitted
	head := []audit.Subject{{Name: headSubject(w.r.Run.ID), Digest: w.r.Journal.Head}}
	if p.Change == "" {
		return head, nil
	}
	change, err := readChange(w.dir, p.Change)
	if err != nil {
		return nil, err
	}
	if len(change.Files) < len(p.Files) {
		return nil, errors.New("the change has fewer files than its event names")
	}
	var all []audit.Subject
	for i, f := range p.Files {
		of := change.Files[i]
		switch of.Change {
		case workspace.Added:
			c.Added++
		case workspace.Modified:
			c.Modified++
		case workspace.Deleted:
			c.Deleted++
			c.DeletedFiles = append(c.DeletedFiles, f.Path)
			continue
		}
		s := audit.Subject{Name: f.Path, Annotations: map[string]string{"change": of.Change}}
		switch {
		case of.New == nil:
			return nil, fmt.Errorf("the change says nothing of %q", f.Path)
		case of.New.Type == workspace.TypeLink:
			sum := sha256.Sum256([]byte(of.New.Target))
			s.Digest.SHA256, s.Annotations["type"] = hex.EncodeToString(sum[:]), "link"
		default:
			s.Digest.SHA256 = strings.TrimPrefix(of.New.Hash, hashPrefix)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return head, nil
	}
	return all, nil
}

// headSubject is the subject of a run that has left no file: a statement has at least one.
func headSubject(run string) string { return "run/" + run + "/journal-head" }

// digests are those of the objects of a plan. The Run object is left out: its prompt and its
// inputs could be guessed from a digest.
func digests(dir, id string) ([]audit.ManifestDigest, audit.PolicySet, error) {
	b, err := journal.ReadBlob(dir, id)
	if err != nil {
		return nil, audit.PolicySet{}, fmt.Errorf("the plan of the run: %w", err)
	}
	var plan struct {
		Agent      json.RawMessage   `json:"agent"`
		Model      json.RawMessage   `json:"model"`
		Fallbacks  []json.RawMessage `json:"fallbacks"`
		Summarizer json.RawMessage   `json:"summarizer"`
		Coders     []json.RawMessage `json:"coders"`
		Tools      []struct {
			Tool json.RawMessage `json:"tool"`
		} `json:"tools"`
		Policies []json.RawMessage `json:"policies"`
		Ceilings []json.RawMessage `json:"ceilings"`
		Skills   []json.RawMessage `json:"skills"`
	}
	if err := json.Unmarshal(b, &plan); err != nil {
		return nil, audit.PolicySet{}, fmt.Errorf("the plan of the run: %w", err)
	}
	objects := append([]json.RawMessage{plan.Agent, plan.Model}, plan.Fallbacks...)
	objects = append(append(objects, plan.Summarizer), plan.Coders...)
	for _, t := range plan.Tools {
		objects = append(objects, t.Tool)
	}
	all := []audit.ManifestDigest{}
	for _, o := range append(objects, plan.Policies...) {
		if d := digestOf(o); d != nil && !slices.Contains(all, *d) {
			all = append(all, *d)
		}
	}
	for _, raw := range plan.Skills {
		var s struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &s) == nil {
			all = append(all, audit.ManifestDigest{Kind: "Skill", Name: s.Name, Digest: audit.Digest{SHA256: sumOf(raw)}})
		}
	}
	return all, policySet(plan.Policies, plan.Ceilings), nil
}

// digestOf is the digest of an object as the plan has it; nil of what is absent.
func digestOf(object json.RawMessage) *audit.ManifestDigest {
	var o struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if len(object) == 0 || json.Unmarshal(object, &o) != nil || o.Kind == "" {
		return nil
	}
	return &audit.ManifestDigest{Kind: o.Kind, Name: o.Metadata.Name, Digest: audit.Digest{SHA256: sumOf(object)}}
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// policySet is the digest over the policies of a run.
func policySet(policies, ceilings []json.RawMessage) audit.PolicySet {
	set := audit.PolicySet{Policies: []string{}}
	var lines []string
	for _, p := range policies {
		if d := digestOf(p); d != nil {
			set.Policies = append(set.Policies, d.Name)
			lines = append(lines, hashPrefix+d.Digest.SHA256+"  "+d.Name+"\n")
		}
	}
	slices.Sort(set.Policies)
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(a[len(hashPrefix)+2*sha256.Size:], b[len(hashPrefix)+2*sha256.Size:])
	})
	for _, c := range ceilings {
		lines = append(lines, hashPrefix+sumOf(c)+"  ceiling\n")
	}
	set.Digest.SHA256 = sumOf([]byte(strings.Join(lines, "")))
	return set
}
