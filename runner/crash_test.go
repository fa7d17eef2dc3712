package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// The harness kills a run, as nothing can be caught, and has another process go
// on with it until it ends. CRASH=full does so at every write, before it, in
// the middle of the line and after it, at every sync, and at 200 random
// moments; otherwise each write dies in one of these ways and 25 moments are
// taken, of both a fifth under the race detector. CRASH_SEED repeats the moments of an earlier time.
const (
	errandVar = "AGENTCTL_TEST_ERRAND"
	fullVar   = "CRASH"
	seedVar   = "CRASH_SEED"
)

// patience ends what hangs. Nothing here is slow when it takes less: machines are
// busy.
const patience = time.Minute

// errand is what a process that will die is to do.
type errand struct {
	Place  place
	Resume bool
	Doom   doom
	// Talk says that somebody talks to the run.
	Talk bool
}

// doom is the moment of a death: at the Nth step of a kind, when Share of it
// is done. The zero value is a death by somebody else's hand.
type doom struct {
	Kind  string
	N     int
	Share float64
}

func (d doom) String() string { return fmt.Sprintf("%s %d at %g", d.Kind, d.N, d.Share) }

// place is written down for another process.
func (p place) MarshalText() ([]byte, error) {
	return []byte(strings.Join([]string{p.manifests, p.workspace, p.state}, "\n")), nil
}

func (p *place) UnmarshalText(b []byte) error {
	f := strings.Split(string(b), "\n")
	p.manifests, p.workspace, p.state = f[0], f[1], f[2]
	return nil
}

// doErrand is the main function of a process that will die. What it says on
// its standard output it has acknowledged: events that somebody has seen, and
// events that are durable.
func doErrand(text string) {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		panic(err)
	}
	_ = os.Unsetenv(errandVar)
	say := func(what string, n int64) { _, _ = fmt.Fprintf(os.Stdout, "%s %d\n", what, n) }
	f := &fate{doom: e.Doom, die: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}, durable: func(n int64) { say("durable", n) }}
	seen := func(e event.Event) { say("seen", e.Seq) }
	disk := f.disk()
	if e.Talk {
		disk.write = chatter(e.Place.state, disk.write)
	}
	var err error
	if e.Resume {
		_, err = Resume(context.Background(), ResumeOptions{Ref: journal.Latest, State: e.Place.state, Approve: "all", Version: "test", Events: seen, disk: disk})
	} else {
		_, err = Run(context.Background(), e.Place.options(func(o *RunOptions) { o.Approve, o.Events, o.disk = "all", seen, disk }))
	}
	if err != nil {
		fmt.Println("error", err)
	}
}

// fate counts what reaches the disk and strikes at the right moment.
type fate struct {
	doom    doom
	die     func()
	durable func(lines int64)

	writes, syncs, lines atomic.Int64
}

func (f *fate) disk() disk { return disk{f.write, f.sync} }

func (f *fate) write(file *os.File, b []byte) (int, error) {
	n := f.writes.Add(1)
	if f.doom.Kind == "write" && n == int64(f.doom.N) {
		_, _ = file.Write(b[:int(f.doom.Share*float64(len(b)))])
		f.die()
	}
	if isEvents(file) {
		f.lines.Add(1)
	}
	return file.Write(b)
}

func (f *fate) sync(file *os.File) error {
	n, lines := f.syncs.Add(1), f.lines.Load()
	mine := f.doom.Kind == "sync" && n == int64(f.doom.N)
	if mine && f.doom.Share == 0 {
		f.die()
	}
	err := file.Sync()
	if mine {
		f.die()
	}
	if err == nil && isEvents(file) && f.durable != nil {
		f.durable(lines - 1) // one may still be on its way
	}
	return err
}

func isEvents(f *os.File) bool { return strings.HasPrefix(filepath.Base(f.Name()), "events-") }

// crashing declares a run with everything a crash could harm: a prompt that asks for calls, reads in
// parallel, edits that demand a read before, commands that append, calls that
// may never and calls that may safely be repeated, a correction of the answer.
func crashing(t *testing.T, strategy string) place {
	t.Helper()
	steps := `
- calls: [{tool: read, args: {path: a.txt}}, {tool: read, args: {path: b.txt}}, {tool: grep, args: {pattern: one}}]
- say: first the edit
  calls: [{tool: edit, args: {path: a.txt, oldString: one, newString: two}}]
- calls: [{tool: bash, args: {command: "echo 1 >> log.txt"}}]
- calls: [{tool: never, args: {num: 1}}, {tool: again, args: {num: 1}}, {tool: never, args: {num: 2}}]
- calls: [{tool: edit, args: {path: b.txt, oldString: one, newString: two}}, {tool: write, args: {path: new/c.txt, content: "c\n"}}]
- calls: [{tool: edit, args: {path: a.txt, oldString: two, newString: three}}]
- calls: [{tool: again, args: {num: 2}}]
- calls: [{tool: never, args: {num: 3}}]
- say: no JSON
- say: '{"ok": true}'
`
	spec := "tools: [{name: read}, {name: grep}, {name: edit}, {name: write}, {name: bash}, {name: never}, {name: again}]\n" +
		"output: {retries: 1, schema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}}"
	p := newPlace(t, "", map[string]string{"a.txt": "one\n", "b.txt": "one\n", "same.txt": "same\n"})
	tool := func(name, retry string) string {
		return "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: " + name + "}\nspec:\n  description: Count.\n" +
			"  parameters: {type: object, properties: {num: {type: integer}}, required: [num]}\n  retry: " + retry + "\n  concurrency: Shared\n" +
			"  source: {exec: {command: [sh, -c, 'echo $AGENTCTL_CALL $AGENTCTL_KEY >> " + p.effects(name) + "; echo done']}}\n"
	}
	run := "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec:\n  agentRef: {name: worker}\n  workspace: {source: {path: .}, strategy: " + strategy + "}\n  prompt: \"Look at @same.txt and !`cat same.txt`.\"\n"
	write(t, filepath.Join(p.manifests, "all.yaml"), agent(spec, steps, tool("never", "Never"), tool("again", "Idempotent"), run))
	return p
}

// effects is the file to which a tool appends a line for each time it runs.
func (p place) effects(tool string) string { return filepath.Join(p.manifests, tool+".log") }

// lines returns the words of what a tool has written, by line.
func (p place) lines(t *testing.T, tool string) [][]string {
	t.Helper()
	b, err := os.ReadFile(p.effects(tool))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(b)) {
		all = append(all, strings.Fields(line))
	}
	return all
}

// calm is what an undisturbed run comes to.
type calm struct {
	files         map[string]string
	diff          string
	writes, syncs int
	took          time.Duration
}

func undisturbed(t *testing.T, strategy string) calm {
	t.Helper()
	p, f := crashing(t, strategy), &fate{}
	start := time.Now()
	out := p.run(t, func(o *RunOptions) { o.Approve, o.disk = "all", f.disk() })
	c := calm{took: time.Since(start), writes: int(f.writes.Load()), syncs: int(f.syncs.Load())}
	want(t, out, reason.Completed)
	for i, r := range out.Result().ToolCalls {
		if r.State != string(message.StateCompleted) {
			t.Fatalf("call %d (%s): %+v", i, r.Tool, r)
		}
	}
	c.files = contents(t, out.Run.Started.Workspace.Dir)
	c.diff = diffOf(t, out)
	if len(p.lines(t, "never")) != 3 || len(p.lines(t, "again")) != 2 || c.files["a.txt"] != "three\n" || c.files["log.txt"] != "1\n" {
		t.Fatalf("the run does not do what it should: %v, %v", p.lines(t, "never"), c.files)
	}
	return c
}

func diffOf(t *testing.T, out *Outcome) string {
	t.Helper()
	if out.Run.Changes.Diff == "" {
		return ""
	}
	b, err := journal.ReadBlob(out.Journal, out.Run.Changes.Diff)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// victim is a run that is killed, some times over, and its place.
type victim struct {
	place
	seen, durable int64
	attempts      int
	// talk says that somebody talks to the run, sent are the ids of what was said.
	talk bool
	sent []string
}

// promises is what a process says, and when it begins to.
type promises struct {
	text  bytes.Buffer
	begun chan struct{}
}

func (p *promises) Write(b []byte) (int, error) {
	if p.text.Len() == 0 {
		close(p.begun)
	}
	return p.text.Write(b)
}

// die lets a process work on the run and be killed: by its own doom, or a while
// after its first event, or early, after its start. It reports whether the process did not live to the end.
func (v *victim) die(t *testing.T, d doom, after time.Duration, early bool) (killed bool) {
	t.Helper()
	text, err := json.Marshal(errand{Place: v.place, Resume: v.attempts > 0, Doom: d, Talk: v.talk})
	if err != nil {
		t.Fatal(err)
	}
	// Programs of this process alone: what is left of them is found by name.
	libexec := t.TempDir()
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, filepath.Join(libexec, builtin.Program))
	}
	if err != nil {
		t.Fatal(err)
	}
	v.attempts++
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), errandVar+"="+string(text), "AGENTCTL_LIBEXEC="+libexec)
	var errs bytes.Buffer
	out := promises{begun: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	if after > 0 {
		killer.Go(func() {
			if !early {
				select {
				case <-out.begun:
				case <-ended:
				}
			}
			select {
			case <-time.After(after):
				_ = cmd.Process.Kill()
			case <-ended:
			}
		})
	}
	err = cmd.Wait()
	close(ended)
	killer.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		killed = status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	if !killed && err != nil {
		t.Fatalf("it died of itself: %v\n%s", err, errs.String())
	}
	base := v.written(t, v.attempts)
	v.acknowledged(t, out.text.Bytes(), base)
	v.alone(t, libexec)
	return killed
}

// written is the number of events there were before this process: durable
// counts the lines of one process.
func (v *victim) written(t *testing.T, attempt int) int64 {
	t.Helper()
	found, err := journal.FindRun(v.state, journal.Latest)
	if err != nil {
		return 0
	}
	for e, err := range journal.Read(t.Context(), found.Dir, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Data.(event.RunResumed); ok && r.Attempt == attempt {
			return e.Seq - 1
		}
	}
	return 0
}

// acknowledged reads what the process has promised.
func (v *victim) acknowledged(t *testing.T, told []byte, base int64) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(told))
	for lines.Scan() {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case what == "seen" && err == nil:
			v.seen = max(v.seen, n)
		case what == "durable" && err == nil && (v.attempts == 1 || base > 0):
			v.durable = max(v.durable, base+n)
		case what == "sent":
			v.sent = append(v.sent, number)
		case what == "error" && !strings.Contains(lines.Text(), "nothing to resume"):
			t.Fatalf("%s", lines.Text())
		}
	}
	found, err := journal.FindRun(v.state, journal.Latest)
	if err != nil {
		if v.seen+v.durable > 0 {
			t.Fatalf("%d events were acknowledged and there is no run: %v", max(v.seen, v.durable), err)
		}
		return
	}
	report, err := journal.Verify(t.Context(), found.Dir)
	if err != nil {
		t.Fatalf("the journal is damaged: %v", err)
	}
	if report.Events > 0 {
		audited(t, found.Dir, true)
	}
	if report.Events < v.seen || report.Events < v.durable {
		t.Fatalf("%d events are there; %d were seen and %d durable", report.Events, v.seen, v.durable)
	}
}

// alone waits until nothing that the dead process had started is left.
func (v *victim) alone(t *testing.T, libexec string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var left []string
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if left = processes(t, libexec, v.state, v.workspace); len(left) == 0 {
			return
		}
	}
	t.Fatalf("processes are left: %q", left)
}

// processes lists those whose command line or working folder speaks of one of
// the paths.
func processes(t *testing.T, paths ...string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may be gone by now
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		for _, p := range paths {
			if len(line) > 0 && strings.Contains(string(line)+cwd, p) {
				found = append(found, filepath.Base(dir)+" "+string(line))
				break
			}
		}
	}
	return found
}

// goOn resumes the run in this process until it has ended. The outcome is nil
// when nothing of the run was kept.
func (v *victim) goOn(t *testing.T, times *durations) *Outcome {
	t.Helper()
	var once sync.Once
	start := time.Now()
	file := filepath.Join(t.TempDir(), "run.cassette.jsonl")
	out, err := Resume(t.Context(), ResumeOptions{Ref: journal.Latest, State: v.state, Approve: "all", Version: "test", Record: file, Events: func(event.Event) {
		once.Do(func() {
			times.add(time.Since(start))
		})
	}})
	if _, ok := errors.AsType[*reason.UsageError](err); ok && v.seen+v.durable == 0 {
		if n := len(v.lines(t, "never")) + len(v.lines(t, "again")); n > 0 {
			t.Errorf("nothing to resume, but tools ran %d times", n)
		}
		return nil
	}
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	replaysAsItWas(t, out, file)
	return out
}

// check holds the end of a run against that of an undisturbed one.
func (v *victim) check(t *testing.T, out *Outcome, want calm) {
	t.Helper()
	f := out.Run.Finished
	if f.Reason != string(reason.Completed) || f.ExitCode != 0 || f.Output != `{"ok": true}` || out.Run.Phase != view.Succeeded {
		t.Errorf("ended %+v", f)
	}
	report, err := journal.Verify(t.Context(), out.Journal)
	if err != nil || report.Torn != nil || !report.Anchored {
		t.Errorf("journal: %+v, %v", report, err)
	}
	audited(t, out.Journal, false)
	unknown := v.calls(t, out)
	v.effectsOf(t, out)
	if left, _ := filepath.Glob(filepath.Join(out.Journal, "workspace", "*.base")); len(left) > 0 {
		t.Errorf("%v is left of a run that has ended", left)
	}
	got := contents(t, out.Run.Started.Workspace.Dir)
	changed := map[string]bool{}
	for _, c := range out.Result().ChangedFiles {
		changed[c.Path] = true
	}
	before := map[string]string{"a.txt": "one\n", "b.txt": "one\n", "same.txt": "same\n"}
	for _, name := range []string{"a.txt", "b.txt", "same.txt", "log.txt", "new/c.txt"} {
		was, old := before[name]
		is, there := got[name]
		if changed[name] != (old != there || was != is) {
			t.Errorf("%s: %q, but changed is %v", name, is, changed[name])
		}
		delete(changed, name)
		if !unknown[name] && got[name] != want.files[name] {
			t.Errorf("%s: %q, want %q", name, got[name], want.files[name])
		}
		delete(got, name)
	}
	if len(got)+len(changed) > 0 {
		t.Errorf("more files: %v, more changes: %v", got, changed)
	}
	if len(unknown) == 0 {
		if diff := cmp.Diff(want.diff, diffOf(t, out)); diff != "" {
			t.Errorf("another diff (-undisturbed +resumed):\n%s", diff)
		}
	}
}

// calls checks that every call has come to an end, and returns the files of
// those of which nobody can say whether they happened.
func (v *victim) calls(t *testing.T, out *Outcome) map[string]bool {
	t.Helper()
	unknown := map[string]bool{}
	all := out.Result().ToolCalls
	if len(all) != 16 && len(all) != 15 { // two of them are those of the prompt
		t.Errorf("%d calls", len(all))
	}
	for _, c := range all {
		p := out.Run.Call(c.ID)
		var in struct {
			Path string `json:"path"`
		}
		_ = json.Unmarshal(p.Input, &in) // a command has none
		if c.Tool == "bash" {
			in.Path = "log.txt"
		}
		switch {
		case p.State == message.StateCompleted:
		case p.State == message.StateError && p.Result.Code == message.CodeUnknown:
			if p.Attempt == 0 {
				t.Errorf("%s %s is unknown without an intent", c.Tool, c.ID)
			}
			unknown[in.Path] = true
		case p.State == message.StateError && unknown[in.Path] && in.Path != "":
			// The file is not what the model takes it for.
		default:
			t.Errorf("%s %s: %s %+v", c.Tool, c.ID, p.State, p.Result)
		}
	}
	return unknown
}

// effectsOf counts what the tools really did.
func (v *victim) effectsOf(t *testing.T, out *Outcome) {
	t.Helper()
	times, keys := map[string]int{}, map[string]string{}
	for _, tool := range []string{"never", "again"} {
		for _, line := range v.lines(t, tool) {
			call, key := line[0], line[1]
			times[call]++
			if tool == "never" && times[call] > 1 {
				t.Errorf("call %s of a tool that must not be repeated ran %d times", call, times[call])
			}
			if keys[call] != "" && keys[call] != key {
				t.Errorf("call %s ran with the keys %s and %s", call, keys[call], key)
			}
			keys[call] = key
		}
	}
	for _, c := range out.Result().ToolCalls {
		if (c.Tool == "never" || c.Tool == "again") && c.State == string(message.StateCompleted) && times[c.ID] == 0 {
			t.Errorf("call %s of %s has a result and never ran", c.ID, c.Tool)
		}
		delete(times, c.ID)
	}
	if len(times) > 0 {
		t.Errorf("calls ran that the journal does not know: %v", times)
	}
}

// durations are gathered by tests at the same time.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) add(one time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, one)
}

func (d *durations) tell(t *testing.T, kills int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		t.Error("nothing was resumed")
		return
	}
	slices.Sort(d.all)
	t.Logf("%d kills, %d resumes; until the run goes on: p50 %v, p95 %v, longest %v", kills, len(d.all), d.all[len(d.all)/2], d.all[len(d.all)*95/100], d.all[len(d.all)-1])
}

// TestAKillAtAnyDurableWriteIsSurvived kills a run at each write and each sync
// of its journal, and has it go on.
func TestAKillAtAnyDurableWriteIsSurvived(t *testing.T) {
	full := os.Getenv(fullVar) == "full"
	want := undisturbed(t, "Copy")
	var dooms []doom
	shares := []float64{0, 0.5, 1}
	for n := 1; n <= want.writes; n++ {
		for i, share := range shares {
			if full || n%len(shares) == i {
				dooms = append(dooms, doom{"write", n, share})
			}
		}
	}
	for n := 1; n <= want.syncs; n++ {
		for i, share := range shares[:2] {
			if full || n%2 == i {
				dooms = append(dooms, doom{"sync", n, share})
			}
		}
	}
	if raceDetector && !full {
		dooms = everyFifth(dooms)
	}
	crashAll(t, len(dooms), func(t *testing.T, i int, times *durations) int {
		t.Helper()
		v := &victim{place: crashing(t, "Copy")}
		if !v.die(t, dooms[i], 0, false) && dooms[i].N <= want.writes*9/10 && dooms[i].Kind == "write" {
			t.Errorf("%v: it lived", dooms[i])
		}
		if out := v.goOn(t, times); out != nil {
			v.check(t, out, want)
		}
		if t.Failed() {
			t.Logf("killed at %v", dooms[i])
		}
		return 1
	})
}

// everyFifth leaves some of each kind and share.
func everyFifth(all []doom) (some []doom) {
	for i := 0; i < len(all); i += 5 {
		some = append(some, all[i])
	}
	return some
}

// TestAKillAtAnyMomentIsSurvived kills a run, and those who go on with it, at
// random moments.
func TestAKillAtAnyMomentIsSurvived(t *testing.T) {
	moments := 25
	switch {
	case os.Getenv(fullVar) == "full":
		moments = 200
	case raceDetector:
		moments = 5
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", seedVar, seed)
	strategies := []string{"Copy", "InPlace"}
	wants := []calm{undisturbed(t, "Copy"), undisturbed(t, "InPlace")}
	crashAll(t, moments, func(t *testing.T, i int, times *durations) int {
		t.Helper()
		chance := rand.New(rand.NewPCG(seed, uint64(i)))
		which := i % 2
		v := &victim{place: crashing(t, strategies[which])}
		kills := 0
		for range 1 + chance.IntN(3) {
			d, after := doom{}, time.Duration(1+chance.Int64N(int64(wants[which].took)))
			if kills > 0 && chance.IntN(2) == 0 { // one who goes on may die while it writes, too
				d, after = doom{"write", 1 + chance.IntN(wants[which].writes), chance.Float64()}, 0
			}
			if !v.die(t, d, after, chance.IntN(5) == 0) {
				break
			}
			kills++
		}
		if out := v.goOn(t, times); out != nil {
			v.check(t, out, wants[which])
		}
		t.Logf("%d kills, %d events seen, attempts %d", kills, v.seen, v.attempts)
		return kills
	})
}

// TestARunThatFilledTheDiskGoesOn lets the disk become full at some write; the
// run ends without a word in its journal, and goes on when there is room again.
func TestARunThatFilledTheDiskGoesOn(t *testing.T) {
	want := undisturbed(t, "Copy")
	step := 12
	if os.Getenv(fullVar) == "full" {
		step = 1
	}
	crashAll(t, want.writes/step, func(t *testing.T, i int, times *durations) int {
		t.Helper()
		v := &victim{place: crashing(t, "Copy")}
		var writes atomic.Int64
		out, err := Run(t.Context(), v.options(func(o *RunOptions) {
			o.Approve = "all"
			o.disk.write = func(f *os.File, b []byte) (int, error) {
				if writes.Add(1) <= int64(i*step) {
					return f.Write(b)
				}
				n, _ := f.Write(b[:len(b)/2])
				return n, syscall.ENOSPC
			}
		}))
		if err == nil && (out.ExitCode() == 0 || out.Run.Phase != view.Failed) {
			t.Errorf("a full disk at write %d: %+v", i*step, out.Run.Finished)
		}
		if out := v.goOn(t, times); out != nil {
			v.check(t, out, want)
		}
		return 0
	})
}

// crashAll runs the cases, a few at a time.
func crashAll(t *testing.T, cases int, one func(t *testing.T, i int, times *durations) (kills int)) {
	t.Helper()
	times := &durations{}
	var kills atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for i := range cases {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				kills.Add(int64(one(t, i, times)))
			})
		}
	})
	times.tell(t, int(kills.Load()))
}
