package runs

import (
	"cmp"
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/workspace"
)

// Place names a run and a place in it. Ref is required.
type Place struct {
	// State is the folder that holds the run, Ref the run as View takes it.
	State, Ref string
	// At is a place as moment.Find takes it: a message, a call, turn/N or step/N; "" is
	// the end.
	At string
	// Files is a folder with files of the run besides its own; "" is none. What it has is
	// taken where its hash is the recorded one.
	Files string
}

// Check reports whether the run and the place are there. The error is a *reason.UsageError.
func (p Place) Check(ctx context.Context) error {
	_, err := findSide(ctx, p)
	return err
}

// Comparison is what differs between two runs at a place of each, or between two places of
// one run.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Divergence is where the conversations part; nil where they are the same.
	Divergence *Divergence `json:"divergence"`
	// Decisions are those about the same call that differ.
	Decisions []DecisionPair `json:"decisions"`
	Usage     UsagePair      `json:"usage"`
	Files     FilesCompared  `json:"files"`
}

// Side is one of the two.
type Side struct {
	Run string `json:"run"`
	// At is the place as it was named; "" is the end. Message and Call are what it is before.
	At      string `json:"at"`
	Message string `json:"message,omitempty"`
	Call    string `json:"call,omitempty"`
	// Agent and Model of the newest turn there, Phase of the whole run.
	Agent string           `json:"agent"`
	Model message.ModelRef `json:"model"`
	Phase string           `json:"phase"`
}

// UsagePair is what each has used until its place.
type UsagePair struct {
	A Used `json:"a"`
	B Used `json:"b"`
}

// Used is what a run has used.
type Used struct {
	Steps  int           `json:"steps"`
	Tokens message.Usage `json:"tokens"`
	// Cost in dollars; nil where the price of an answer is not known.
	Cost *message.Cost `json:"cost"`
}

// FilesCompared are the files of two places.
type FilesCompared struct {
	// Changed are the files that differ, from A to B.
	Changed []event.FileChange `json:"changed"`
	// Unkept are those of Changed whose contents are not known on one side: they differ by
	// their hashes, and have no lines in the diff.
	Unkept []string `json:"unkept"`
	// Unlisted are folders that could not be read on one side.
	Unlisted []string `json:"unlisted"`
	// Unknown is why the files of a side are not known, "" where they are.
	Unknown struct {
		A string `json:"a,omitempty"`
		B string `json:"b,omitempty"`
	} `json:"unknown"`
	// Diff from A to B, as git writes it.
	Diff string `json:"diff"`
}

// Compare compares two places. It changes nothing. Its error is a *reason.UsageError, or
// means that a journal cannot be read.
func Compare(ctx context.Context, a, b Place) (*Comparison, error) {
	from, err := findSide(ctx, a)
	if err != nil {
		return nil, err
	}
	to, err := findSide(ctx, b)
	if err != nil {
		return nil, err
	}
	c := &Comparison{A: from.side(), B: to.side(), Usage: UsagePair{usedAt(from.at.Before), usedAt(to.at.Before)}, Decisions: []DecisionPair{}}
	said, others := from.conversation(), to.conversation()
	c.Divergence = diverge(said, others)
	c.Decisions = append(c.Decisions, decisionPairs(said, others)...)
	c.Files, err = compareFiles(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare the files of run %s and run %s: %w", from.found.ID, to.found.ID, err)
	}
	return c, nil
}

// side is a place that was found.
type side struct {
	found journal.Found
	name  string
	files string
	at    *moment.Moment
}

func findSide(ctx context.Context, p Place) (*side, error) {
	found, err := journal.FindRun(p.State, p.Ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	at, err := moment.Find(ctx, found, p.At)
	if err != nil {
		return nil, err
	}
	return &side{found, p.At, p.Files, at}, nil
}

func (s *side) side() Side {
	v := s.at.Before
	if v.ID == "" { // before its first event
		v = s.at.Run
	}
	return Side{
		Run: s.found.ID, At: s.name, Message: s.at.Message, Call: s.at.Call, Agent: v.Started.Agent, Model: v.Started.Model, Phase: s.at.Run.Phase,
	}
}

func usedAt(v *view.Run) Used {
	u := Used{Steps: v.Steps, Tokens: v.Tokens}
	if !v.Unpriced {
		cost := v.Cost
		u.Cost = &cost
	}
	return u
}

// compareFiles compares the files of two places. Those that are the same are not read.
func compareFiles(ctx context.Context, a, b *side) (FilesCompared, error) {
	out := FilesCompared{Changed: []event.FileChange{}, Unkept: []string{}, Unlisted: []string{}}
	out.Unknown.A, out.Unknown.B = a.unknownFiles(), b.unknownFiles()
	if a.found.Dir == b.found.Dir && a.at.Files == b.at.Files && a.at.Files.Unknown == "" {
		out.Unknown.A, out.Unknown.B = "", ""
		return out, nil // also where they were never recorded
	}
	if out.Unknown.A != "" || out.Unknown.B != "" {
		return out, nil
	}
	from, err := workspace.ReadState(journal.Stored(a.found.Dir), a.at.Files.State)
	if err != nil {
		return out, err
	}
	to, err := workspace.ReadState(journal.Stored(b.found.Dir), b.at.Files.State)
	if err != nil {
		return out, err
	}
	texts := newContents(a, b, from, to)
	defer texts.close()
	change := workspace.Between(texts, from, to)
	if err := ctx.Err(); err != nil {
		return out, context.Cause(ctx)
	}
	out.Changed, out.Diff = append(out.Changed, change.Named()...), string(change.Diff)
	for _, f := range change.Files {
		if !texts.has(f.Old) || !texts.has(f.New) {
			out.Unkept = append(out.Unkept, string(f.Path))
		}
	}
	for _, hidden := range [][]workspace.Path{from.Hidden, to.Hidden} {
		for _, dir := range hidden {
			out.Unlisted = append(out.Unlisted, string(dir))
		}
	}
	return out, nil
}

// unknownFiles is why the files of a side are not known, "" where they are.
func (s *side) unknownFiles() string {
	switch f := s.at.Files; {
	case f.Unknown != "":
		return f.Unknown
	case f.State == "" && s.at.Begin.Parent != nil:
		return "it worked on the files of run " + s.at.Begin.Parent.Run + ", which has recorded them"
	case f.State == "":
		return "they were not recorded, as no call needed them or could change them: they are those of " + cmp.Or(s.at.Begin.Workspace.Source, "its folder") + " at its begin"
	}
	return ""
}
