package agenttest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/engine"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
	"agentctl.dev/agentctl/runner/workspace"
)

const head = "apiVersion: agentctl.dev/v1alpha1\nkind: "

// stand is an engine whose runs are what a function makes of their tasks.
type stand struct {
	set     *manifest.Set
	catalog *admission.Catalog
	run     func(ctx context.Context, t *engine.Task) (*engine.Ended, error)
}

func (s *stand) Manifests() (*manifest.Set, *admission.Catalog)                 { return s.set, s.catalog }
func (s *stand) Remote(*engine.Task) ([]*v1alpha1.Model, error)                 { return nil, nil }
func (s *stand) CassetteOf(string) string                                       { return "" }
func (s *stand) Run(ctx context.Context, t *engine.Task) (*engine.Ended, error) { return s.run(ctx, t) }

func (s *stand) Record(context.Context, *engine.Task, string) (*engine.Recorded, error) {
	return nil, errors.New("nothing is recorded")
}

func (s *stand) Replay(context.Context, *engine.Task, string) (*engine.Replayed, error) {
	return nil, errors.New("nothing is replayed")
}

// standing reads tests of an agent that says its prompt.
func standing(t testing.TB, tests string) *stand {
	t.Helper()
	text := head + "Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}, instructions: x, tools: [{name: read}]}\n---\n" +
		head + "Model\nmetadata: {name: m}\nspec: {provider: scripted, scripted: {steps: [{say: x}]}}\n---\n" + tests
	set, found := manifest.Load(t.Context(), []string{"-"}, strings.NewReader(text))
	catalog, more := admission.Admit(set, admission.Options{Models: provider.All(), Tools: sources.All()})
	if found = append(found, more...); found.HasErrors() {
		t.Fatal(found)
	}
	return &stand{set: set, catalog: catalog, run: says}
}

// says is a run that answers with its prompt.
func says(_ context.Context, t *engine.Task) (*engine.Ended, error) {
	return &engine.Ended{Run: ended(t, t.Prompt)}, nil
}

func ended(t *engine.Task, output string) *view.Run {
	v := &view.Run{ID: "r", Phase: view.Succeeded, Steps: 1}
	v.Started = event.RunStarted{Agent: t.Agent, Prompt: t.Prompt}
	v.Finished = &event.RunFinished{Phase: view.Succeeded, Reason: string(reason.Completed), Output: output, DurationMs: 1}
	return v
}

// table is a Test with as many cases, whose prompts are their names.
func table(name string, cases ...string) string {
	text := head + "Test\nmetadata: {name: " + name + "}\nspec:\n  agentRef: {name: a}\n  expect: [\"result.output == 'good'\"]\n  cases:\n"
	for i, prompt := range cases {
		text += fmt.Sprintf("  - {name: \"%d\", prompt: %s}\n", i, prompt)
	}
	return text + "---\n"
}

func outcomes(r *report.Report) (all []string) {
	for i := range r.Results {
		c := &r.Results[i]
		word := "failed"
		switch {
		case c.NotRun != "":
			word = "not run"
		case c.Pass:
			word = "passed"
		}
		all = append(all, strings.TrimSpace(c.Name()+" "+word+" "+c.Model+c.Policy))
	}
	return all
}

func TestResultsAreInTheOrderOfTheManifests(t *testing.T) {
	s := standing(t, table("z", "good", "bad", "good")+table("b", "good"))
	var running, most atomic.Int64
	s.run = func(ctx context.Context, task *engine.Task) (*engine.Ended, error) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		runtime.Gosched()
		return says(ctx, task)
	}
	for _, parallel := range []int{1, 3, 100} {
		var seen []Progress
		most.Store(0)
		r, err := Run(t.Context(), Options{Engine: s, Parallel: parallel, Progress: func(p Progress) { seen = append(seen, p) }})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"z/0 passed", "z/1 failed", "z/2 passed", "b/0 passed"}, outcomes(r)); diff != "" {
			t.Errorf("%d at a time (-want +got):\n%s", parallel, diff)
		}
		if r.Tests != 2 || r.Cases != 4 || r.Passed != 3 || r.Failed != 1 || r.Columns[0].Steps != 4 {
			t.Errorf("sums %+v", r)
		}
		if len(seen) != 4 || seen[3].Done != 4 || seen[3].Failed != 1 || most.Load() > int64(parallel) {
			t.Errorf("%d at a time: progress %+v, %d were run together", parallel, seen, most.Load())
		}
	}
}

func TestSelection(t *testing.T) {
	s := standing(t, table("first", "good", "good")+table("second", "good")+
		head+"Test\nmetadata: {name: plain}\nspec: {agentRef: {name: a}, prompt: good, expect: [\"result.output == 'good'\"]}\n")
	for name, c := range map[string]struct {
		reason string
		o      Options
		want   []string
		err    string
	}{
		"all":      {"nothing selects all", Options{}, []string{"first/0", "first/1", "second/0", "plain"}, ""},
		"test":     {"a test is all of its cases", Options{Names: []string{"first"}}, []string{"first/0", "first/1"}, ""},
		"case":     {"a case by itself", Options{Names: []string{"second/0", "first/1"}}, []string{"first/1", "second/0"}, ""},
		"pattern":  {"an expression over the names", Options{Only: regexp.MustCompile("/0$")}, []string{"first/0", "second/0"}, ""},
		"both":     {"both have to select", Options{Names: []string{"first"}, Only: regexp.MustCompile("1")}, []string{"first/1"}, ""},
		"unknown":  {"a name that is not there is an error", Options{Names: []string{"frist"}}, nil, `there is no test "frist"`},
		"no case":  {"so is a case", Options{Names: []string{"plain/0"}}, nil, "there is no test"},
		"no match": {"and an expression that selects nothing", Options{Only: regexp.MustCompile("^x$")}, nil, "no case has a name"},
		"update":   {"nothing here can be recorded", Options{Update: true}, nil, "none of the selected tests has a cassette"},
		"model":    {"a model is one of the manifests", Options{Models: []string{"nil"}}, nil, `there is no Model "nil"`},
		"policy":   {"so is a policy", Options{Policies: []string{"none", "p"}}, nil, `there is no Policy "p"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Engine = s
			r, err := Run(t.Context(), c.o)
			usage, _ := errors.AsType[*reason.UsageError](err)
			if (err == nil) != (c.err == "") || err != nil && (usage == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("%s: %v", c.reason, err)
			}
			var got []string
			for i := 0; err == nil && i < len(r.Results); i++ {
				got = append(got, r.Results[i].Name())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	if _, err := Run(t.Context(), Options{Engine: standing(t, "")}); err == nil || !strings.Contains(err.Error(), "hold no Test") {
		t.Errorf("without a Test: %v", err)
	}
}

func TestColumnsAreEveryModelWithEveryPolicy(t *testing.T) {
	s := standing(t, table("t", "good")+head+"Model\nmetadata: {name: other}\nspec: {provider: scripted, scripted: {steps: []}}\n---\n"+
		head+"Policy\nmetadata: {name: p}\nspec: {default: deny}\n")
	var mu sync.Mutex
	tasks := map[string]int{}
	s.run = func(ctx context.Context, task *engine.Task) (*engine.Ended, error) {
		mu.Lock()
		defer mu.Unlock()
		tasks[task.Model+" "+strings.Join(task.Policies, ",")]++
		return says(ctx, task)
	}
	r, err := Run(t.Context(), Options{Engine: s, Models: []string{"m", "other", "m"}, Policies: []string{NoPolicy, "p"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t/0 passed m", "t/0 passed mp", "t/0 passed other", "t/0 passed otherp"}, outcomes(r)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"m ": 1, "m p": 1, "other ": 1, "other p": 1}, tasks); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstFailureLeavesTheRestOut(t *testing.T) {
	r, err := Run(t.Context(), Options{Engine: standing(t, table("t", "good", "bad", "good", "good")), FailFast: true, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t/0 passed", "t/1 failed", "t/2 not run", "t/3 not run"}, outcomes(r)); diff != "" {
		t.Error(diff)
	}
	if r.NotRun != 2 || r.Passed != 1 {
		t.Errorf("sums %+v", r)
	}
}

func TestASetThatIsStoppedHasNoReport(t *testing.T) {
	s := standing(t, table("t", "good", "good", "good"))
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	var runs atomic.Int64
	s.run = func(ctx context.Context, task *engine.Task) (*engine.Ended, error) {
		runs.Add(1)
		cancel(why)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if r, err := Run(ctx, Options{Engine: s, Parallel: 1}); !errors.Is(err, why) || r != nil || runs.Load() != 1 {
		t.Errorf("report %v, error %v, %d runs", r, err, runs.Load())
	}
}

// TestWhatCannotBeJudgedFails: a case passes only if its run was seen and everything that
// is expected of it was found true.
func TestWhatCannotBeJudgedFails(t *testing.T) {
	test := func(expect string) string {
		return head + "Test\nmetadata: {name: t}\nspec:\n  agentRef: {name: a}\n  prompt: good\n  expect:\n  - " + expect + "\n"
	}
	failed := func(ctx context.Context, task *engine.Task) (*engine.Ended, error) {
		v := ended(task, "good")
		v.Phase, v.Finished.Phase, v.Finished.Reason, v.Finished.ExitCode = view.Failed, view.Failed, string(reason.MaxSteps), 5
		return &engine.Ended{Run: v}, nil
	}
	for name, c := range map[string]struct {
		reason, expect string
		run            func(context.Context, *engine.Task) (*engine.Ended, error)
		problem        string
		pass           bool
	}{
		"met":          {"what is true passes", "result.output == 'good'", says, "", true},
		"not met":      {"what is false does not", "result.output == 'bad'", says, "", false},
		"error":        {"nor what cannot be evaluated", "files['x'].size == 1", says, "", false},
		"failed run":   {"nor a run that failed, if nothing is said of its end", "result.output == 'good'", failed, "", false},
		"expected end": {"unless something is", "result.reason == 'MaxSteps'", failed, "", true},
		"no run": {"nor a run that did not begin", "result.output == 'good'", func(context.Context, *engine.Task) (*engine.Ended, error) {
			return nil, reason.New(reason.IsolationUnavailable, "no sandbox").WithHint("install one")
		}, "no sandbox", false},
		"no end": {"nor one without an end", "result.steps == 1", func(_ context.Context, task *engine.Task) (*engine.Ended, error) {
			v := ended(task, "")
			v.Finished = nil
			return &engine.Ended{Run: v}, nil
		}, "left before its end", false},
		"unseen": {"nor one whose events were not seen", "result.steps == 1", func(_ context.Context, task *engine.Task) (*engine.Ended, error) {
			return &engine.Ended{Run: ended(task, ""), Unseen: 3}, nil
		}, "3 events of the run were not seen in time", false},
		"unknown changes": {"nor files that are not known", "size(files) == 0", func(_ context.Context, task *engine.Task) (*engine.Ended, error) {
			v := ended(task, "good")
			v.Changes.Error = "a folder cannot be read"
			return &engine.Ended{Run: v}, nil
		}, "not completely known: a folder cannot be read", false},
		"too many events": {"nor more events than are kept", "events.all(e, e.type != 'warning')", func(_ context.Context, task *engine.Task) (*engine.Ended, error) {
			for range maxEvents + 1 {
				task.Events(event.Event{Data: event.StepStart{}})
			}
			return &engine.Ended{Run: ended(task, "good")}, nil
		}, "more than 20000 events", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := standing(t, test(c.expect))
			s.run = c.run
			r, err := Run(t.Context(), Options{Engine: s})
			if err != nil {
				t.Fatal(err)
			}
			got := r.Results[0]
			if got.Pass != c.pass || (got.Problem == "") != (c.problem == "") || !strings.Contains(got.Problem, c.problem) {
				t.Errorf("%s: pass %t, problem %q", c.reason, got.Pass, got.Problem)
			}
		})
	}
}

func TestNamesOfFoldersAreApart(t *testing.T) {
	names := map[string]string{}
	for _, name := range []string{"t/a b", "t/a_b", "t/a b,", "t", "t/ä", "t/" + strings.Repeat("x", 300), "t/" + strings.Repeat("x", 301), "../x", "t/.."} {
		file := fileName(name)
		if other, taken := names[file]; taken || strings.ContainsAny(file, "/ ") || len(file) > 100 || file == ".." || file == "." {
			t.Errorf("%q is the folder %q, as %q", name, file, other)
		}
		names[file] = name
	}
	if fileName("greets") != "greets" {
		t.Error("a plain name is changed")
	}
}

// TestTheWordsOfExpectationsAreThose of the packages that make them.
func TestTheWordsOfExpectationsAreThose(t *testing.T) {
	set := newExpectations(standing(t, "").catalog).of("a")
	for _, word := range []string{view.Succeeded, view.Failed, view.Cancelled, view.Suspended} {
		if _, err := set.Compile("result.phase == '" + word + "'"); err != nil {
			t.Error(err)
		}
	}
	for _, word := range []string{workspace.Added, workspace.Modified, workspace.Deleted} {
		if _, err := set.Compile("files['x'].change == '" + word + "'"); err != nil {
			t.Error(err)
		}
	}
	for _, word := range []workspace.Type{workspace.TypeFile, workspace.TypeDir, workspace.TypeLink} {
		if _, err := set.Compile("files['x'].type == '" + string(word) + "'"); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryVariableHasAValue(t *testing.T) {
	set := newExpectations(standing(t, "").catalog).of("a")
	task := &engine.Task{Agent: "a", Prompt: "p"}
	vars, err := values(set, (&witness{}).subject(ended(task, `{"n": 1}`), ""), true, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{
		"result.agent == 'a' && result.message == '' && result.output != '' && result.structured.n == 1 && result.durationMs == 1 && result.changesError == '' && size(result.warnings) == 0",
		"result.tokens.input + result.tokens.output + result.tokens.reasoning + result.tokens.cacheRead + result.tokens.cacheWrite + result.tokens.total == 0",
		"result.calls.done + result.calls.refused + result.calls.asked + result.calls.repaired == 0 && !has(result.cost)",
		"size(calls) + size(decisions) + size(files) + size(events) + size(children) == 0 && prompt == 'p' && size(inputs) == 0",
	} {
		e, err := set.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := e.Judge(t.Context(), vars); err != nil || !v.Met {
			t.Errorf("%s: %+v, %v", expression, v, err)
		}
	}
}
