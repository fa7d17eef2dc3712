package agenttest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/engine"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/manifest"
)

// trial is one case in one column.
type trial struct {
	*set
	*admission.PlannedCase
	column *report.Column
	seen   witness
	person answers
}

// result is the report of a case of which nothing is known yet.
func (t *trial) result() report.Case {
	return report.Case{
		Test: t.Test, Case: t.Case, Model: t.column.Model, Policy: t.column.Policy, Position: t.Place(), Agent: t.Agent, Expectations: []report.Expectation{},
	}
}

// left is the report of a case that was not run.
func (t *trial) left(why string) report.Case {
	r := t.result()
	r.NotRun = why
	return r
}

// run runs the case and judges it.
func (t *trial) run(ctx context.Context) report.Case {
	r := t.result()
	began := time.Now()
	v, dir, err := t.execute(ctx, &r)
	if err == nil {
		err = t.judge(ctx, &r, v, dir)
	}
	if err != nil {
		r.Problem, r.Hint, r.ExitCode = problem(err), hint(err), exitCode(err)
		r.Pass = false
	}
	if r.DurationMs == 0 || dir == "" { // a recording took longer
		r.DurationMs = time.Since(began).Milliseconds()
	}
	if state := t.state(); dir != "" || t.Keep != "" {
		if t.Keep != "" && !r.Pass {
			if _, err := os.Stat(state); err == nil {
				r.Kept = state
			}
		} else if err := fstree.Remove(state); err != nil && r.Problem == "" {
			r.Pass, r.Problem, r.ExitCode = false, problem(err), reason.ExitFailed
		}
	}
	return r
}

// hint is how to go on after an error.
func hint(err error) string {
	if usage, ok := errors.AsType[*reason.UsageError](err); ok {
		return usage.Hint
	}
	return reason.Hint(err)
}

// exitCode is that of an error that kept a case from being judged.
func exitCode(err error) int {
	if _, usage := errors.AsType[*reason.UsageError](err); usage {
		return reason.ExitUsage
	}
	if _, invalid := errors.AsType[*manifest.InvalidError](err); invalid {
		return reason.ExitUsage
	}
	return reason.Of(err).ExitCode()
}

// problem is an error in words.
func problem(err error) string {
	if invalid, ok := errors.AsType[*manifest.InvalidError](err); ok {
		for _, f := range invalid.Findings {
			return fmt.Sprintf("%s: %s: %s", f.Position, f.Path, f.Message)
		}
	}
	return err.Error()
}

// execute replays the case, records it again, or runs it. It returns the run and its
// folder, "" for a replay.
func (t *trial) execute(ctx context.Context, r *report.Case) (v *view.Run, dir string, err error) {
	r.Cassette = t.Record
	switch {
	case t.column.Model != "": // a recording is of another model
		r.Cassette = ""
	case t.Update:
		r.Cassette = t.cassetteOf(t.PlannedCase)
	}
	r.Cassette = shownFile(r.Cassette)
	if r.Cassette != "" && !t.Update {
		v, err = t.replay(ctx, r)
		return v, "", err
	}
	task, err := t.task(ctx, r)
	if err != nil {
		return nil, "", err
	}
	var out *engine.Ended
	if r.Cassette != "" {
		out, err = t.record(ctx, task, r)
	} else {
		out, err = t.Engine.Run(ctx, task)
	}
	if err != nil {
		return nil, "", err
	}
	if err := t.person.problem(); err != nil {
		t.used(r, out.Run)
		return nil, out.Dir, err
	}
	if out.Unseen > 0 {
		return nil, out.Dir, fmt.Errorf("%d events of the run were not seen in time", out.Unseen)
	}
	return out.Run, out.Dir, nil
}

// shownFile is shown for a file that may be none.
func shownFile(file string) string {
	if file == "" {
		return ""
	}
	return shown(file)
}

// task is the run of the case.
func (t *trial) task(ctx context.Context, r *report.Case) (*engine.Task, error) {
	t.person.entries, t.person.at = t.Approvals, t.ApprovalsAt
	o := &engine.Task{
		Agent: t.Agent, Model: cmp.Or(t.column.Model, t.Model), Models: t.Models, Prompt: t.Prompt, Inputs: t.Inputs, Policies: t.narrowing(), State: t.state(),
		Answers: &t.person, Timeout: t.Timeout, Events: t.seen.see, Children: t.seen.seeBelow,
	}
	if r.Cassette != "" && t.Record == "" {
		o.Model = "" // the Model of the test is the recording: the agent's own is asked
	}
	if t.coverage != nil {
		o.Traced = t.coverage.trace
	}
	if err := t.local(o, r); err != nil {
		return nil, err
	}
	if err := fstree.Remove(o.State); err != nil { // what an earlier set of tests has kept
		return nil, err
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("make a state folder: %w", err)
	}
	var err error
	o.Workspace, err = t.fixtures.of(ctx, &t.Workspace)
	return o, err
}

// narrowing are the policies that narrow the run.
func (t *trial) narrowing() []string {
	if t.column.Policy == "" {
		return t.Policies
	}
	return append(t.Policies[:len(t.Policies):len(t.Policies)], t.column.Policy)
}

// local refuses a run that would ask a model over the network, unless it was asked for.
func (t *trial) local(o *engine.Task, r *report.Case) error {
	asked, err := t.Engine.Remote(o)
	if err != nil {
		return err
	}
	if file := t.Engine.CassetteOf(cmp.Or(o.Model, t.ownModel(t.PlannedCase))); file != "" && r.Cassette != "" && shown(file) == r.Cassette {
		return reason.Usagef("the agent's own Model is the cassette %s: there is no model to record", r.Cassette).WithHint("name the cassette in spec.record of the Test, and in spec.modelRef the Model to ask")
	}
	if len(asked) == 0 || t.column.Model != "" || r.Cassette != "" {
		return nil
	}
	m := asked[0]
	return reason.Usagef("model %q asks %s: a test asks no model over the network", m.Name, m.Spec.Provider).
		WithHint("name a scripted Model in spec.modelRef (of an agent below in spec.models), record the run with spec.record and --update, or choose the models with --models")
}

// state is the state folder of the run.
func (t *trial) state() string {
	name := nameOf(t.PlannedCase)
	for _, more := range []string{t.column.Model, t.column.Policy} {
		if more != "" {
			name += "," + more
		}
	}
	return filepath.Join(t.states, fileName(name))
}

// fileName makes one name of a file of the name of a case. Names of cases are free, and two
// of them may differ in what a file name has not.
func fileName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == ',':
			return r
		}
		return '_'
	}, name)
	if len(plain) > 80 {
		plain = plain[:80]
	}
	if plain == name {
		return plain
	}
	sum := sha256.Sum256([]byte(name))
	return plain + "-" + hex.EncodeToString(sum[:4])
}

// replay plays the cassette of the case.
func (t *trial) replay(ctx context.Context, r *report.Case) (*view.Run, error) {
	if _, err := os.Stat(t.Record); errors.Is(err, os.ErrNotExist) {
		return nil, reason.Usagef("%s is not recorded yet", r.Cassette).WithHint("agentctl test --update records it: it asks the model and runs the tools")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout, reason.New(reason.DeadlineExceeded, "spec.timeout of %s passed", t.Timeout))
	defer cancel()
	out, err := t.Engine.Replay(ctx, &engine.Task{Agent: t.Agent, Model: t.Model, Models: t.Models, Prompt: t.Prompt, Inputs: t.Inputs, Events: t.seen.see}, r.Cassette)
	if err != nil {
		return nil, err
	}
	r.Notes = out.Notes
	if out.Divergence != nil {
		r.Divergence = out.Divergence
		return nil, reason.New(reason.ReplayDiverged, "%w", out.Divergence).WithHint("if the change is intended, record the run again: agentctl test --update")
	}
	return out.Run, nil
}

// record runs the case and records it.
func (t *trial) record(ctx context.Context, task *engine.Task, r *report.Case) (*engine.Ended, error) {
	if err := os.MkdirAll(filepath.Dir(t.cassetteOf(t.PlannedCase)), 0o755); err != nil {
		return nil, fmt.Errorf("record the run: %w", err)
	}
	out, err := t.Engine.Record(ctx, task, r.Cassette)
	if err != nil {
		return nil, err
	}
	r.Recorded = out.Unrecorded == nil
	if out.Unread == nil && r.Recorded {
		r.Change = &out.Change
	} else if out.Unread != nil && !errors.Is(out.Unread, fs.ErrNotExist) {
		r.Notes = append(r.Notes, "the old cassette could not be compared: "+out.Unread.Error())
	}
	if out.Unrecorded != nil {
		t.used(r, out.Run)
		why := reason.Reason(out.Run.Finished.Reason)
		return nil, reason.New(why, "%s is not recorded: %s", r.Cassette, cmp.Or(out.Run.Finished.Message, out.Unrecorded.Error())).WithHint("%s", out.Run.Finished.Hint)
	}
	return out.Ended, nil
}

// used notes how the run ended and what it took.
func (t *trial) used(r *report.Case, v *view.Run) {
	res := v.Result("")
	r.Phase, r.Reason, r.Message, r.Output = res.Phase, res.Reason, t.worded(res.Message), res.Output
	r.Steps, r.Tokens, r.DurationMs = res.Steps, v.Tokens.Total(), res.DurationMs
	if r.Unpriced = res.Cost == nil; !r.Unpriced {
		r.Cost = *res.Cost
	}
}

// worded names the limit of the test as its author has written it.
func (t *trial) worded(message string) string {
	for _, flag := range []string{"--timeout of ", "limits.timeout of "} {
		message = strings.Replace(message, flag+t.Timeout.String(), "spec.timeout of the Test, "+t.Timeout.String()+",", 1)
	}
	return message
}

// judge evaluates what is expected of the run.
func (t *trial) judge(ctx context.Context, r *report.Case, v *view.Run, dir string) error {
	t.used(r, v)
	subject := t.seen.subject(v, dir)
	if t.coverage != nil {
		t.coverage.run(v)
		for _, b := range subject.Below {
			t.coverage.run(b.Run)
		}
	}
	if v.Finished == nil {
		return errors.New("the run was left before its end")
	}
	set := t.expected.of(t.Agent)
	expected, files, events, ends := make([]*expect.Expectation, len(t.Expect)), false, false, false
	for i := range t.Expect {
		e, err := set.Compile(t.Expect[i].Expression)
		if err != nil {
			return fmt.Errorf("%s: %w", t.ExpectPlace(i), err)
		}
		expected[i], files, events, ends = e, files || e.ReadsFiles(), events || e.ReadsEvents(), ends || e.JudgesEnd()
	}
	values, err := values(set, subject, files, events)
	if err != nil {
		return err
	}
	r.Pass = true
	add := func(out report.Expectation, e *expect.Expectation) error {
		verdict, err := e.Judge(ctx, values)
		if err != nil {
			return err
		}
		out.Pass, out.Values = verdict.Met, verdict.Values
		if verdict.Err != nil {
			out.Error = verdict.Err.Error()
		}
		r.Pass = r.Pass && out.Pass
		r.Expectations = append(r.Expectations, out)
		return nil
	}
	for i, e := range expected {
		if err := add(report.Expectation{Name: t.Expect[i].Name, Expression: strings.TrimSpace(t.Expect[i].Expression), Position: t.ExpectPlace(i), Message: t.Expect[i].Message}, e); err != nil {
			return err
		}
	}
	if ends {
		return nil
	}
	e, err := set.Compile(succeeded)
	if err != nil {
		return err
	}
	return add(report.Expectation{Expression: succeeded, Position: t.Place(), Message: "the run has to succeed, unless an expectation says how it ends", Implied: true}, e)
}

// succeeded is expected where nothing is said about the end of a run.
const succeeded = "result.phase == 'Succeeded'"
