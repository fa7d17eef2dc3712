package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test program stand in for both sides: for the floor, which
// bench starts as itself, and for an agentctl that is the floor with a result.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{floorVerb, "run", "version"}, os.Args[1]) {
		code := 0
		if err := standIn(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		// Not os.Exit, in which the race detector sleeps for a second.
		syscall.Exit(code)
	}
	os.Exit(m.Run())
}

func standIn(args []string) error {
	switch args[0] {
	case "version":
		return nil
	case floorVerb:
		return run(context.Background(), args, os.Stdout, os.Stderr)
	}
	f := flag.NewFlagSet("agentctl", flag.ContinueOnError)
	manifests, workspace := f.String("f", "", ""), f.String("workspace", "", "")
	for _, name := range []string{"p", "state", "approve", "o"} {
		f.String(name, "", "")
	}
	f.Bool("allow-unsandboxed", false, "")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(*manifests, "bench.yaml"))
	if err != nil {
		return err
	}
	url := regexp.MustCompile(`http://\S+`).FindString(string(text))
	if err := runFloor(context.Background(), []string{url, *workspace}, io.Discard); err != nil {
		return err
	}
	call := `{"state":"completed","decision":"allow"}`
	fmt.Printf(`{"reason":"Completed","toolCalls":[%s],"changedFiles":[{"path":"turns.txt"}]}`, strings.Repeat(call+",", 2)+call)
	return nil
}

func TestBenchMeasuresBothSides(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-agentctl", self, "-reps", "2", "-turns", "3", "-memory-reps", "1", "-journal=false", "-json", "-dir", t.TempDir()}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	figures := map[string]figure{}
	for _, f := range r.Figures {
		figures[f.Name] = f
	}
	for _, name := range []string{"wall of 3 turns", "overhead per turn p50", "cold start to first request"} {
		f := figures[name]
		if f.Floor == nil || f.Agentctl == nil || f.Ratio == nil || *f.Floor <= 0 || *f.Agentctl <= 0 {
			t.Errorf("%s: %+v, want both sides measured", name, f)
		}
		if f.Must == nil {
			t.Errorf("%s has no goal", name)
		}
	}
	if r.Init.Total <= 0 || r.Init.Package == "" {
		t.Errorf("the work before main was not measured: %+v", r.Init)
	}
	if f := figures["fsync of this disk p50"]; f.Floor == nil || *f.Floor <= 0 {
		t.Errorf("the disk was not measured: %+v", f)
	}
	out.Reset()
	if err := run(t.Context(), []string{"-floor-only", "-reps", "1", "-turns", "2", "-memory-reps", "0", "-dir", t.TempDir()}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "wall of 2 turns") {
		t.Errorf("table:\n%s", &out)
	}
}

func TestBenchRefusesBadArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"flag":    {[]string{"-nope"}, "flag provided"},
		"extra":   {[]string{"x"}, "unexpected argument"},
		"reps":    {[]string{"-reps", "0"}, "at least one repetition"},
		"missing": {[]string{"-agentctl", "/nowhere/agentctl"}, "make build"},
		"floor":   {[]string{"floor"}, "usage"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), c.args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run(%v) = %v, want %q", c.args, err, c.want)
			}
		})
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); err != nil {
		t.Errorf("asking for help is no error: %v", err)
	}
}

func TestAProgramThatFailsEndsTheBench(t *testing.T) {
	o := options{turns: 3}
	for name, c := range map[string]struct {
		reason string
		argv   []string
		want   string
	}{
		"exit":  {"its words are shown", []string{"sh", "-c", "echo broken >&2; exit 3"}, "broken"},
		"quiet": {"a program that never asks the model was not measured", []string{"true"}, "0 requests, want 4"},
		"none":  {"a program that does not exist", []string{"/nowhere/x"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := side{
				name: "x", argv: func(_, _, _, _ string) []string { return c.argv },
				verify: func([]byte, int) error { return nil },
			}
			_, err := s.once(t.Context(), o, t.TempDir(), false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

func TestServerNoticesACommandThatDidNotRun(t *testing.T) {
	request := func(results int, more string) string {
		return `{"stream":true,"messages":[` + strings.Repeat(`{"role":"tool"},`, results) + `"` + more + `"]}`
	}
	whole := []string{request(0, ""), request(1, ""), request(2, "lines=2")}
	for name, c := range map[string]struct {
		bodies []string
		want   string
	}{
		"good":        {whole, ""},
		"short":       {whole[:1], "1 requests, want 3"},
		"no stream":   {[]string{`{}`}, "asks for no stream"},
		"lost result": {[]string{whole[0], whole[0]}, "request 2 does not carry the results of 1 calls"},
		"not run":     {[]string{whole[0], whole[1], request(2, "lines=1")}, "no lines=2"},
		"too many":    {append(whole[:3:3], whole[2]), "after the final answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := listen(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			for _, body := range c.bodies {
				post(t, s.url+"/chat/completions", body)
			}
			if got := post(t, s.url+"/models", "{}"); got != http.StatusNotFound {
				t.Errorf("another path answers %d", got)
			}
			seen, err := s.result()
			if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("result = %v, want %q", err, c.want)
			}
			if err == nil && len(seen.overheads) != 2 {
				t.Errorf("%d overheads, want one per turn", len(seen.overheads))
			}
		})
	}
}

func post(t *testing.T, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

func TestStreamIsWhatAClientExpects(t *testing.T) {
	for turn := 1; turn <= 3; turn++ {
		var m floorMessage
		for line := range strings.Lines(string(stream(turn, 2))) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			if err := m.add([]byte(data)); err != nil {
				t.Fatalf("turn %d: %v in %s", turn, err, data)
			}
		}
		if turn == 3 {
			if m.Content != "All commands ran." || m.ToolCalls != nil {
				t.Errorf("final answer %+v", m)
			}
			continue
		}
		var in map[string]string
		if err := json.Unmarshal([]byte(m.ToolCalls[0].Function.Arguments), &in); err != nil {
			t.Fatalf("turn %d: the fragments do not add up: %v", turn, err)
		}
		if diff := cmp.Diff(command(turn, 2), in["command"]); diff != "" {
			t.Errorf("turn %d: %s", turn, diff)
		}
	}
	var m floorMessage
	if err := m.add([]byte("<html>")); err == nil {
		t.Error("a chunk that is not JSON is an error")
	}
}

func TestVerifyResultReadsAgentctlsAccount(t *testing.T) {
	const call = `{"state":"completed","decision":"allow"}`
	for text, want := range map[string]string{
		`{"reason":"Completed","toolCalls":[` + call + `],"changedFiles":[{"path":"turns.txt"}]}`: "",
		`<html>`: "not JSON",
		`{"reason":"NoFinalAnswer","toolCalls":[` + call + `]}`:                                                   "NoFinalAnswer",
		`{"reason":"Completed","toolCalls":[]}`:                                                                   "after 0 calls",
		`{"reason":"Completed","toolCalls":[{"state":"error","decision":"deny"}]}`:                                `state "error"`,
		`{"reason":"Completed","toolCalls":[{"state":"completed"}]}`:                                              "decision",
		`{"reason":"Completed","toolCalls":[` + call + `],"changedFiles":[{"path":"turns.txt"},{"path":"core"}]}`: "turns.txt alone",
	} {
		err := verifyResult([]byte(text), 1)
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("verifyResult(%s) = %v, want %q", text, err, want)
		}
	}
}

func TestGoalsAreJudgedWithinARepetition(t *testing.T) {
	at := func(wall, turn time.Duration) sample {
		return sample{Wall: wall, Cold: 10 * time.Millisecond, Overheads: []time.Duration{turn, turn}, CPU: 50 * time.Millisecond}
	}
	r := &report{
		Turns: 2, Repetitions: 3, FsyncP50: 350 * time.Microsecond, JournalPerSecond: 50_000,
		// The machine is slower in the second repetition, for both.
		samples: map[string][]sample{
			sideFloor:    {at(10*time.Millisecond, time.Millisecond), at(40*time.Millisecond, 4*time.Millisecond), at(10*time.Millisecond, time.Millisecond)},
			sideAgentctl: {at(20*time.Millisecond, 2600*time.Microsecond), at(80*time.Millisecond, 10400*time.Microsecond), at(20*time.Millisecond, 2600*time.Microsecond)},
		},
		memory: []memorySample{{sideFloor, treePeak{RSS: 10 << 20}}, {sideAgentctl, treePeak{RSS: 90 << 20, PSS: 50 << 20}}},
	}
	r.summarise()
	type judged struct {
		Ratio       float64
		Must, Final string
	}
	got := map[string]judged{}
	for _, f := range r.Figures {
		j := judged{Must: f.Must.String(), Final: f.Final.String()}
		if f.Ratio != nil {
			j.Ratio = *f.Ratio
		}
		got[f.Name] = j
	}
	want := map[string]judged{
		"wall of 2 turns":                    {2, "≤ 3.0 × + 0.40 ms disk ok", "≤ 2.6 × + 0.40 ms disk ok"},
		"overhead per turn p50":              {2.6, "≤ 2.5 × + 0.20 ms disk ok", "≤ 2.0 × + 0.20 ms disk MISS"},
		"overhead per turn p95, from turn 2": {2.6, "", "≤ 6 + 0.20 ms disk ok"},
		"overhead of turn 1":                 {2.6, "", "≤ 12 + 0.20 ms disk ok"},
		"cold start to first request":        {1, "≤ 40 ok", "≤ 20 ok"},
		"CPU of a run":                       {1, "", "≤ 0.12 ok"},
		"peak RSS of the process tree":       {9, "≤ 80 MISS", "≤ 65 MISS"},
		"peak PSS of the process tree":       {0, "", ""},
		"journal, buffered":                  {0, "≥ 100000 MISS", "≥ 100000 MISS"},
		"fsync of this disk p50":             {0, "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err := r.missed()
	if err == nil || err.Error() != "goals missed: peak RSS of the process tree, journal, buffered" {
		t.Errorf("missed = %v", err)
	}
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil || !strings.Contains(table.String(), "50000") {
		t.Errorf("table %v:\n%s", err, &table)
	}
	if err := (&report{}).missed(); err != nil {
		t.Errorf("nothing measured, nothing missed: %v", err)
	}
}

func TestWatchTreeSeesChildren(t *testing.T) {
	peak := weigh(descendants(os.Getpid()))
	if peak.Processes < 1 || peak.RSS < 1<<20 || peak.PSS <= 0 {
		t.Errorf("this process weighs %+v", peak)
	}
	if got := weigh([]int{1 << 30}); got != (treePeak{}) {
		t.Errorf("a process that has ended weighs %+v", got)
	}
	if got := kilobytes("Rss:\nPss: x kB\n", "Rss:") + kilobytes("Pss: x kB\n", "Pss:") + kilobytes("", "Rss:"); got != 0 {
		t.Errorf("garbage weighs %d", got)
	}
}

func TestParseJournalReadsTheBenchmark(t *testing.T) {
	got, err := parseJournal("goos: linux\nBenchmarkAppend-4   \t  500000\t      2500 ns/op\t 400000 events/s\nPASS\n")
	if err != nil || got != 400_000 {
		t.Errorf("parseJournal = %v, %v, want 400000", got, err)
	}
	if _, err := parseJournal("PASS\n"); err == nil {
		t.Error("no benchmark is an error, not a rate of zero")
	}
}

func TestParseInitReadsTheRuntimesTrace(t *testing.T) {
	got := parseInit("init internal/godebug @0.5 ms, 0.012 ms clock, 512 bytes, 9 allocs\nnoise\ninit a.b/c @1 ms, 5.4 ms clock, 7 bytes, 1 allocs\n")
	if diff := cmp.Diff(map[string]float64{"internal/godebug": 0.012, "a.b/c": 5.4}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := measureInit(t.Context(), "/nowhere/x"); err == nil {
		t.Error("a program that does not start was measured")
	}
}

func TestPercentile(t *testing.T) {
	all := []int{5, 1, 4, 2, 3}
	if got := []int{percentile(all, 0), percentile(all, 50), percentile(all, 95), percentile(all, 100), percentile([]int(nil), 50)}; !cmp.Equal(got, []int{1, 3, 5, 5, 0}) {
		t.Errorf("percentiles %v", got)
	}
	if !cmp.Equal(all, []int{5, 1, 4, 2, 3}) {
		t.Error("the samples were sorted in place")
	}
}
