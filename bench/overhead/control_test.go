package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutAgentdTheControlPlaneIsNotMeasured(t *testing.T) {
	b := &bench{options: options{agentctl: filepath.Join(t.TempDir(), "agentctl")}, report: &report{}, progress: io.Discard}
	b.report.begin("control", 1)
	if err := measureControl(t.Context(), b, 1); err != nil {
		t.Fatal(err)
	}
	if len(b.report.Figures) != 0 || len(b.report.Notes) != 1 || !strings.Contains(b.report.Notes[0], "no agentd") {
		t.Errorf("%v %v", b.report.Figures, b.report.Notes)
	}
}

func TestReadyIsALineOfTheLog(t *testing.T) {
	l := &logTail{ready: make(chan struct{})}
	for _, text := range []string{"time=1 level=INFO msg=pre", "paring\nlevel=INFO msg=re", "ady url=https://127.0.0.1:1 kubeconfig=x\n", "more\n"} {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "ady url") {
			select {
			case <-l.ready:
			default:
				t.Fatalf("not ready after %q", l.tail())
			}
		} else if text != "more\n" && l.said {
			t.Fatalf("ready after %q", l.tail())
		}
	}
	if l.when.IsZero() || !strings.HasSuffix(string(l.tail()), "more\n") {
		t.Errorf("%v %q", l.when, l.tail())
	}
}

func TestCPUCountsTheChildren(t *testing.T) {
	for stat, want := range map[string]time.Duration{
		"7 (a (b) c) S 1 7 7 0 -1 4194560 100 200 3 4 10 20 30 40 20 0 9 0 100\n": time.Second,
		"7 (short) S 1": 0,
		"7 (bad) S 1 7 7 0 -1 4194560 100 200 3 4 x 20 30 40 20": 0,
		"": 0,
	} {
		if got := parseCPU(stat); got != want {
			t.Errorf("%q: %v, want %v", stat, got, want)
		}
	}
}

// TestFiguresOfTheControlPlaneHaveTheirGoals pins them to what was promised.
func TestFiguresOfTheControlPlaneHaveTheirGoals(t *testing.T) {
	r := &report{}
	r.begin("control", 1)
	b := &bench{report: r}
	verbs := []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 20 * time.Millisecond}
	b.reportControl([]controlTimes{{first: time.Second, restart: 500 * time.Millisecond, idle: 121, apply: verbs, get: verbs}})
	l := &load{runs: 1000, begin: time.Unix(0, 0), end: time.Unix(10, 0), events: verbs, probes: []probe{{sent: time.Unix(0, 0), answered: time.Unix(1, 0), seen: time.Unix(1, 0)}}, ends: verbs}
	l.report(r)
	var got []string
	for _, f := range r.Figures {
		if f.Goal != nil {
			got = append(got, f.Name+" "+f.Goal.String())
		}
	}
	want := []string{
		"agentd, restart to ready ≤ 600 ok",
		"agentd, idle RSS ≤ 120 MISS",
		"first apply ever, agentd started by it ≤ 1000 ok",
		"apply of one manifest ≤ 60 ok",
		"get ≤ 50 ok",
		"1000 runs of 3 steps, 64 at once, per core ≥ 10 ",
		"event of a run, journal to stream p99 ≤ 100 ok",
		"object, answered write to a watch p99 ≤ 100 ok",
	}
	for i := range got {
		if strings.HasPrefix(got[i], "1000 runs") {
			got[i] = strings.TrimRight(got[i], "okMIS") // by the machine's cores
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALagBeginsWithTheAnswerAtTheEarliest(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	for _, c := range []struct {
		probe                probe
		fromSent, fromAnswer time.Duration
	}{
		{probe{at(0), at(10), at(12)}, 12 * time.Millisecond, 2 * time.Millisecond},
		{probe{at(0), at(10), at(8)}, 8 * time.Millisecond, 0},
	} {
		if got := c.probe.fromSent(); got != c.fromSent {
			t.Errorf("%+v: %v since it was sent", c.probe, got)
		}
		if got := c.probe.fromAnswer(); got != c.fromAnswer {
			t.Errorf("%+v: %v since it was answered", c.probe, got)
		}
	}
}
