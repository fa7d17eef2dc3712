package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/bench/overhead/floor"
)

// TestMain lets the test program stand in for an agentctl that is the floor with
// a result.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "version"}, os.Args[1]) {
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
	if err := floor.Run(context.Background(), []string{url, *workspace}, io.Discard); err != nil {
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
	args := []string{"-agentctl", self, "-only", "crowd,start,text,turns", "-reps", "2", "-turns", "3", "-memory-reps", "1", "-json", "-dir", t.TempDir()}
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
		if f.Goal == nil || f.Scenario != "turns" {
			t.Errorf("%s has no goal or stands in the wrong place: %+v", name, f)
		}
	}
	if f := figures["init before main, all packages"]; f.Agentctl == nil || *f.Agentctl <= 0 {
		t.Errorf("the work before main was not measured: %+v", f)
	}
	if f := figures["fsync of this disk p50"]; f.Floor == nil || *f.Floor <= 0 {
		t.Errorf("the disk was not measured: %+v", f)
	}
	for _, name := range []string{"8 processes at once", "200 KB in 2,000 chunks and a command p50"} {
		if f := figures[name]; f.Ratio == nil || *f.Ratio <= 0 {
			t.Errorf("%s: %+v, want both sides measured", name, f)
		}
	}
	out.Reset()
	if err := run(t.Context(), []string{"-floor-only", "-only", "many,start,turns", "-conversations", "3", "-reps", "1", "-turns", "2", "-memory-reps", "0", "-dir", t.TempDir()}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), " CPUs") {
		t.Errorf("nothing is said of the machine:\n%s", &out)
	}
	if !strings.Contains(out.String(), "wall of 2 turns") || !strings.Contains(out.String(), "3 conversations at once") || strings.Contains(out.String(), "init") {
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
		"reps":    {[]string{"-reps", "-1"}, "negative number of repetitions"},
		"turns":   {[]string{"-turns", "1"}, "no less than two turns"},
		"only":    {[]string{"-only", "turns,fast"}, `no scenario "fast"`},
		"missing": {[]string{"-agentctl", "/nowhere/agentctl"}, "make build"},
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
				name: "x", argv: func(string, folders) []string { return c.argv },
				verify: func([]byte, int) error { return nil },
			}
			b := &bench{dir: t.TempDir()}
			_, err := b.converse(t.Context(), s, talk{turns: 3}, false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.reason, err, c.want)
			}
		})
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

func TestParseInitReadsTheRuntimesTrace(t *testing.T) {
	got := parseInit("init internal/godebug @0.5 ms, 0.012 ms clock, 512 bytes, 9 allocs\nnoise\ninit a.b/c @1 ms, 5.4 ms clock, 7 bytes, 1 allocs\n")
	if diff := cmp.Diff(map[string]float64{"internal/godebug": 0.012, "a.b/c": 5.4}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := measureInit(t.Context(), "/nowhere/x", 1); err == nil {
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

func TestMemoryThatIsSharedCountsOnce(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	}()
	self := os.Getpid()
	if !sameMemory(self, self) || sameMemory(self, child.Process.Pid) {
		t.Errorf("the same as itself: %v, as its child: %v", sameMemory(self, self), sameMemory(self, child.Process.Pid))
	}
	if one, twice := weigh([]int{self}), weigh([]int{self, self}); twice.Processes != one.Processes {
		t.Errorf("%d processes, want %d", twice.Processes, one.Processes)
	}
}
