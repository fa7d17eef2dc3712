//go:build linux

package sandbox

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// prepared returns the process id of the helper that was started ahead.
func prepared(t *testing.T, l *Launcher) int {
	t.Helper()
	l.Prepare()
	l.mu.Lock()
	s := l.spare
	l.mu.Unlock()
	<-s.done
	if s.helper == nil {
		t.Fatal("no helper was started ahead")
	}
	return s.helper.proc.Pid
}

func TestTheFirstSandboxIsBuiltByTheHelperThatWasStartedAhead(t *testing.T) {
	l := sandboxed(t)
	pid := prepared(t, l)
	l.Prepare() // a second one has nothing to do
	for _, c := range []struct {
		reason  string
		profile *spec.Profile
		same    bool
	}{
		{"it has a network of its own, which this profile must not have", &spec.Profile{Network: spec.NetworkHost}, false},
		{"it fits every other profile", &spec.Profile{Workspace: workspace(t), Access: spec.AccessReadOnly}, true},
		{"there was only one", &spec.Profile{Group: "next"}, false},
	} {
		proc, err := l.Start(t.Context(), shell(c.profile, "exit 3"))
		if err != nil {
			t.Fatal(err)
		}
		if exit := proc.Wait(); exit.Code != 3 {
			t.Errorf("%+v: exit = %v", *c.profile, exit)
		}
		if same := proc.inner.instance.proc.Pid == pid; same != c.same {
			t.Errorf("%+v: the helper from before: %v, want %v: %s", *c.profile, same, c.same, c.reason)
		}
	}
}

func TestAHelperThatNobodyNeededIsGoneAfterClose(t *testing.T) {
	l := sandboxed(t)
	pid := prepared(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("helper %d: %v, want no such process", pid, err)
	}
	l.Prepare()
	if l.spare != nil {
		t.Error("a closed launcher starts a helper ahead")
	}
}

func TestWithoutAHelperTheFirstProgramSaysWhatIsMissing(t *testing.T) {
	l := New(Options{Helper: t.TempDir() + "/none"})
	defer func() { _ = l.Close() }()
	l.Prepare()
	_, err := l.Start(t.Context(), shell(&spec.Profile{}, "true"))
	if err == nil || !strings.Contains(err.Error(), "agentctl-sandbox cannot be started") {
		t.Errorf("error = %v", err)
	}
}

func TestARetiredLauncherStartsNothing(t *testing.T) {
	l := sandboxed(t)
	l.Retire()
	for name, p := range map[string]*spec.Profile{"level None": nil, "level Sandbox": {}} {
		if _, err := l.Start(t.Context(), shell(p, "true")); !errors.Is(err, errClosed) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

func TestOnlyTheLastTidyProgramOfARetiredLauncherIsGivenNoTime(t *testing.T) {
	const short = 300 * time.Millisecond
	for name, c := range map[string]struct {
		reason                 string
		retire, tidy, together bool
		grace                  time.Duration
		atOnce                 bool
	}{
		"last":    {"what it would end ends with its sandbox", true, true, false, patience, true},
		"running": {"other programs may come", false, true, false, short, false},
		"untidy":  {"it may have something of its own to do", true, false, false, short, false},
		"not one": {"what it started may live on among the others", true, true, true, short, false},
	} {
		l := sandboxed(t)
		s := shell(&spec.Profile{}, `trap "" TERM; echo ready; while :; do sleep 300; done`)
		s.Tidy = c.tidy
		var out buffer
		s.Stdout = &out
		proc, err := l.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		said(t, &out, 1)
		if c.together {
			if _, err := l.Start(t.Context(), shell(s.Profile, "sleep 300")); err != nil {
				t.Fatal(err)
			}
		}
		if c.retire {
			l.Retire()
		}
		begin := time.Now()
		proc.Kill(c.grace)
		if took := time.Since(begin); (took < c.grace) != c.atOnce {
			t.Errorf("%s: it ended after %v, want at once: %v: %s", name, took, c.atOnce, c.reason)
		}
		if exit := proc.Wait(); exit.Signal != "killed" {
			t.Errorf("%s: exit = %v", name, exit)
		}
	}
}

func TestAHelperIsAChildOfTheRunner(t *testing.T) {
	l := sandboxed(t)
	pid := prepared(t, l)
	f := l.spare.helper
	mother := -1
	for _, q := range processes([]int{pid}) {
		mother = q.parent
	}
	if mother != os.Getpid() {
		t.Errorf("the parent of helper %d is %d, want this process, %d", pid, mother, os.Getpid())
	}
	if err := f.proc.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Start(t.Context(), shell(&spec.Profile{}, "true")); err == nil || !strings.Contains(err.Error(), "the sandbox has ended") {
		t.Errorf("a start with a helper that has died: %v", err)
	}
	if out, _, _ := run(t, l, shell(&spec.Profile{}, "echo next")); out != "next\n" {
		t.Errorf("output of the next = %q", out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, q := range processes(pids()) { // the one that bore it has been collected
		if q.parent == os.Getpid() && q.state == 'Z' {
			t.Errorf("process %d is left behind", q.pid)
		}
	}
}

func TestAProgramThatIsNoHelperIsAnError(t *testing.T) {
	for name, program := range map[string]string{
		"says nothing":    "/bin/true",
		"cannot be begun": "/etc/passwd",
	} {
		l := New(Options{Helper: program})
		_, err := l.Start(t.Context(), shell(&spec.Profile{}, "true"))
		if reason.Of(err) != reason.IsolationUnavailable {
			t.Errorf("%s: error = %v", name, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALauncherIsBusyUntilItsProgramsAreGone(t *testing.T) {
	l := sandboxed(t)
	for name, p := range map[string]*spec.Profile{"level None": nil, "level Sandbox": {}} {
		proc, err := l.Start(t.Context(), shell(p, "setsid sleep 300 & sleep 300"))
		if err != nil {
			t.Fatal(err)
		}
		if !l.Busy() {
			t.Errorf("%s: not busy while a program runs", name)
		}
		proc.Kill(0)
		if l.Busy() {
			t.Errorf("%s: busy after its end", name)
		}
	}
}
