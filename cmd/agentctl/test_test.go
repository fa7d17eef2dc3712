package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tested is a set of tests in a folder, with what it takes to carry it out.
func tested(t testing.TB, libexec string, tests ...string) (dir string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"tests.yaml": strings.Join(tests, "---\n"), "tmp/.keep": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "agentctl", args...)
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		cmd.Env = append(os.Environ(), "AGENTCTL_STATE="+filepath.Join(dir, "state"), "AGENTCTL_LIBEXEC="+libexec, "AGENTCTL_OUTER_ISOLATION=container", "TMPDIR="+filepath.Join(dir, "tmp"))
		return cmd
	}
}

const testHead = "apiVersion: agentctl.dev/v1alpha1\nkind: "

// TestASignalEndsAllCasesOfASet: with cases in progress and others to come, the set ends
// with the code of the signal, and neither a process nor a folder of it is left.
func TestASignalEndsAllCasesOfASet(t *testing.T) {
	libexec := buildTools(t)
	if !canSandbox() {
		libexec = withoutSandbox(t, libexec)
	}
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
	}{"int": {syscall.SIGINT, 130}, "term": {syscall.SIGTERM, 143}} {
		t.Run(name, func(t *testing.T) {
			// No other program sleeps for so long.
			seconds := fmt.Sprintf("%d.%d", 30000+os.Getpid()%1000, c.code)
			var cases strings.Builder
			for i := range 6 {
				fmt.Fprintf(&cases, "  - {name: c%d}\n", i)
			}
			dir, command := tested(t, libexec,
				testHead+"Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}, instructions: Sleep., tools: [{name: bash}], policyRefs: [{name: p}]}\n",
				testHead+"Policy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: {tools: [bash]}, action: allow}]}\n",
				testHead+"Model\nmetadata: {name: m}\nspec:\n  "+calling("sleep "+seconds)+"\n",
				testHead+"Test\nmetadata: {name: t}\nspec:\n  agentRef: {name: a}\n  timeout: 5m\n  expect: [result.output == 'done']\n  cases:\n"+cases.String())
			var out, errs bytes.Buffer
			cmd := command("test", "-f", "tests.yaml", "-j", "3")
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitProcesses(t, seconds, func(n int) bool { return n >= 3 })
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its code says how it ended
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", got, c.code, &out, &errs)
			}
			if out.Len() > 0 {
				t.Errorf("a set that was stopped has no report:\n%s", &out)
			}
			awaitProcesses(t, seconds, func(n int) bool { return n == 0 })
			if left, err := filepath.Glob(filepath.Join(dir, "tmp", "agentctl-test-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// awaitProcesses waits until so many processes have a word among their arguments.
func awaitProcesses(t *testing.T, word string, enough func(int) bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		n := 0
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range lines {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("sleep\x00"+word)) { //nolint:gosec // of this host
				n++
			}
		}
		if enough(n) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d processes after %s", n, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// tenSteps is an agent whose model makes nine calls of four tools, three of them commands in
// a shell, under a policy.
const tenSteps = testHead + `Agent
metadata: {name: worker}
spec:
  modelRef: {name: script}
  instructions: Work.
  tools: [{name: read}, {name: grep}, {name: bash}, {name: write}]
  policyRefs: [{name: careful}]
---
` + testHead + `Policy
metadata: {name: careful}
spec:
  permissions: [{permission: bash, pattern: "*", action: ask}, {permission: bash, pattern: "ls *", action: allow}, {permission: bash, pattern: "wc *", action: allow}]
  rules: [{name: stay-inside, when: "paths.exists(p, !p.inWorkspace)", action: deny}]
---
` + testHead + `Model
metadata: {name: script}
spec:
  provider: scripted
  scripted:
    steps:
    - calls: [{tool: read, args: {path: README.md}}]
    - calls: [{tool: bash, args: {command: "ls -l"}}]
    - calls: [{tool: write, args: {path: a.txt, content: hello}}]
    - calls: [{tool: bash, args: {command: "wc -l README.md"}}]
    - calls: [{tool: read, args: {path: a.txt}}]
    - calls: [{tool: grep, args: {pattern: hello}}]
    - calls: [{tool: read, args: {path: /etc/passwd}}]
    - calls: [{tool: write, args: {path: b.txt, content: "${last.output}"}}]
    - calls: [{tool: bash, args: {command: "ls -la"}}]
    - say: done
`

// BenchmarkHundredTests compares a set of 100 tests of ten steps with its floor: as many
// calls of agentctl run, one after the other, and as many at a time as there are processors.
func BenchmarkHundredTests(b *testing.B) {
	const tests = 100
	all := []string{tenSteps}
	for i := range tests {
		all = append(all, fmt.Sprintf(testHead+`Test
metadata: {name: t%d}
spec:
  agentRef: {name: worker}
  workspace: {files: {README.md: "# %d\n"}}
  expect:
  - result.steps == 10 && result.output == 'done'
  - files['a.txt'].content == 'hello' && decisions.exists(d, d.rule == 'careful/stay-inside')
`, i, i))
	}
	dir, command := tested(b, buildTools(b), all...)
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		b.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(work, "README.md"): "# x\n", filepath.Join(dir, "agents.yaml"): tenSteps} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	run := func(args ...string) {
		if out, err := command(args...).CombinedOutput(); err != nil {
			b.Errorf("agentctl %v: %v\n%s", args, err, out)
		}
	}
	runs := func(atATime int) {
		var workers sync.WaitGroup
		left := make(chan int, tests)
		for i := range tests {
			left <- i
		}
		close(left)
		for range atATime {
			workers.Go(func() {
				for range left {
					run("run", "-f", "agents.yaml", "-p", "go", "--workspace", work)
				}
			})
		}
		workers.Wait()
	}
	var took [3]time.Duration
	for b.Loop() {
		for i, measured := range []func(){func() { run("test", "-f", "tests.yaml") }, func() { runs(1) }, func() { runs(runtime.GOMAXPROCS(0)) }} {
			began := time.Now()
			measured()
			took[i] += time.Since(began)
		}
	}
	for i, unit := range []string{"s/set", "s/runs", "s/runs-parallel"} {
		b.ReportMetric(took[i].Seconds()/float64(b.N), unit)
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "set/runs")
	b.ReportMetric(took[0].Seconds()/took[2].Seconds(), "set/runs-parallel")
}
