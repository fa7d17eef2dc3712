package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/installed"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// standIn prints the events of opencode after a while, as long as a start may take, and
// changes a file.
const standIn = `#!/bin/sh
sleep 0.3
if [ "$1" = --version ]; then echo 1.18.33; exit; fi
echo '# changed' >> hello.py
echo '{"type":"step_start","sessionID":"s","part":{}}'
echo '{"type":"text","sessionID":"s","part":{"text":"I have changed it."}}'
echo '{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}'
`

// BenchmarkCodingAgent compares a call of a coding agent of others with its floor: the same
// program with the same arguments, alone, in a copy and a home of its own. It measures a
// stand-in, and with $CODERS (.ci/coders installs it) the programs themselves. Cold is a call
// before which the version of the program is not remembered.
func BenchmarkCodingAgent(b *testing.B) {
	libexec := buildTools(b)
	place := filepath.Join(b.TempDir(), "node_modules", "stand-in")
	program := filepath.Join(place, "opencode")
	if err := os.MkdirAll(place, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(program, []byte(standIn), 0o700); err != nil { //nolint:gosec // a program
		b.Fatal(err)
	}
	untilSettled(b, program, filepath.Dir(place))
	driver, _ := coder.DriverOf("opencode")
	b.Run("stand-in", func(b *testing.B) { benchmarkCodingAgent(b, libexec, driver, program) })
	if programs := os.Getenv("CODERS"); programs != "" {
		for _, d := range coder.Drivers() {
			b.Run(d.Name, func(b *testing.B) { benchmarkCodingAgent(b, libexec, d, filepath.Join(programs, d.Program)) })
		}
	}
}

// untilSettled waits until the version of a program can be remembered: its files have to have
// been left alone for a moment.
func untilSettled(b *testing.B, program, packages string) {
	b.Helper()
	memory := installed.Memory{Dir: b.TempDir()}
	files, err := installed.Look(b.Context(), program, packages)
	if err != nil {
		b.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for err = memory.Keep(b.Context(), files, packages, "1"); err != nil; err = memory.Keep(b.Context(), files, packages, "1") {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatal(err)
		}
	}
}

func benchmarkCodingAgent(b *testing.B, libexec string, d coder.Driver, program string) {
	b.Helper()
	wire, provider := modeltest.Chat, "openai"
	for _, w := range modeltest.Wires() {
		if d.API == coder.Responses && w.Name() == "responses" {
			wire = w
		} else if d.API == coder.Messages && w.Name() == "anthropic" {
			wire, provider = w, "anthropic"
		}
	}
	answer := modeltest.Answer{Text: "I have changed it.", Usage: &modeltest.Usage{Prompt: 10, Completion: 5}}
	server, err := modeltest.Options{Wire: wire, Unchecked: true, Forget: true, Respond: func(modeltest.Request) modeltest.Step { return answer.Step() }}.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	dir, command := tested(b, libexec, fmt.Sprintf(codingSet, d.Name, program, provider, server.URL))
	files := filepath.Join(dir, "files")
	write := func(file string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("print('hello')\n"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 500 {
		write(filepath.Join(files, fmt.Sprintf("d%d", i%20), fmt.Sprintf("f%d.py", i)))
	}
	write(filepath.Join(files, "hello.py"))
	known := filepath.Join(dir, "state", "cache", "coders")
	names, took := []string{"ms/program", "ms/cold-call", "ms/warm-call", "ms/cold-over", "ms/warm-over", "ms/warm-inside"}, [6]time.Duration{}
	for i := 0; b.Loop(); i++ {
		alone := floorOf(b, d, program, strings.TrimSuffix(server.URL, "/v1"), filepath.Join(dir, fmt.Sprint("alone", i)), files)
		if err := os.RemoveAll(known); err != nil {
			b.Fatal(err)
		}
		cold, _ := codingCall(b, command, files)
		if left, err := os.ReadDir(known); err != nil || len(left) != 1 {
			b.Fatalf("the version was not remembered: %v", err)
		}
		warm, inside := codingCall(b, command, files)
		for i, d := range []time.Duration{alone, cold, warm, cold - alone, warm - alone, inside} {
			took[i] += d
		}
	}
	for i, name := range names {
		b.ReportMetric(float64(took[i].Milliseconds())/float64(b.N), name)
	}
}

// floorOf runs a program as the driver starts it.
func floorOf(b *testing.B, d coder.Driver, program, endpoint, dir, files string) time.Duration {
	b.Helper()
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	if err := os.CopyFS(work, os.DirFS(files)); err != nil {
		b.Fatal(err)
	}
	start := d.Start(coder.Task{Prompt: "Change hello.py.", Dir: work, Home: home, Model: "m", Endpoint: endpoint, Token: "t", Contained: true})
	for name, text := range start.Files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program, start.Args...)
	cmd.Dir, cmd.Env = work, append([]string{"PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1"}, start.Env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil || !bytes.Contains(out, []byte("I have changed it.")) {
		b.Fatalf("%s alone: %v\n%s\n%s", program, err, out, errs.Bytes())
	}
	return took
}

// codingCall runs the set and returns how long its call took, from the call to its result, and
// the program in it.
func codingCall(b *testing.B, command func(args ...string) *exec.Cmd, files string) (call, program time.Duration) {
	b.Helper()
	if out, err := command("run", "-f", "tests.yaml", "-p", "go", "--workspace", files, "--approve", "all,R3").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	events, err := command("events", "@latest", "-o", "jsonl").Output()
	if err != nil {
		b.Fatal(err)
	}
	var began time.Time
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Time time.Time       `json:"time"`
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			b.Fatal(err)
		}
		switch {
		case e.Type == "tool.call":
			began = e.Time
		case e.Type == "tool.result" && bytes.Contains(e.Data, []byte("I have changed it.")):
			var took int64
			if _, after, ok := bytes.Cut(e.Data, []byte(`duration_ms\": `)); ok {
				_, err = fmt.Sscan(string(after), &took)
			}
			if err != nil || took == 0 {
				b.Fatalf("no duration: %v\n%s", err, e.Data)
			}
			return e.Time.Sub(began), time.Duration(took) * time.Millisecond
		}
	}
	b.Fatalf("the call has not completed:\n%s", events)
	return 0, 0
}

const codingSet = testHead + `Agent
metadata: {name: lead}
spec:
  modelRef: {name: lead}
  tools: [{name: coder}]
---
` + testHead + `Tool
metadata: {name: coder}
spec:
  callName: coding_agent
  source:
    builtin:
      name: coding_agent
      coding: {programs: [{agent: %s, command: [%q], modelRef: {name: coder}}]}
---
` + testHead + `Model
metadata: {name: coder}
spec: {provider: %s, model: m, baseURL: %q, contextWindow: 100000}
---
` + testHead + `Model
metadata: {name: lead}
spec:
  provider: scripted
  scripted:
    steps:
    - calls: [{tool: coding_agent, args: {prompt: Change hello.py.}}]
    - say: done
`
