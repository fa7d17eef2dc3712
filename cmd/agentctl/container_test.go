package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// boxedProgram is a program of protocol Exec: it tells who it is, what it sees
// and whom it reaches.
const boxedProgram = `package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

func try(what string, err error) {
	if err != nil {
		fmt.Println(what+": refused:", err)
		return
	}
	fmt.Println(what + ": done")
}

func get(u string) string {
	proxy, _ := url.Parse(os.Getenv("HTTP_PROXY"))
	res, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get(u)
	if err != nil {
		return err.Error()
	}
	b, _ := io.ReadAll(res.Body)
	return res.Status + " " + string(b)
}

func main() {
	args, _ := io.ReadAll(os.Stdin)
	fmt.Printf("args %s\nroot %v\ntoken %s\n", args, os.Getuid() == 0, os.Getenv("TOKEN"))
	_, err := os.ReadFile("a.txt")
	try("read a file", err)
	try("write a file", os.WriteFile("b.txt", nil, 0o644))
	secret, _ := os.ReadFile(".env")
	fmt.Printf("what nobody may read: %q\n", secret)
	try("write outside", os.WriteFile("/x", nil, 0o644))
	fmt.Println("listed:", get(os.Getenv("LISTED")))
	fmt.Println("other:", get(os.Getenv("OTHER")))
}
`

// startContainerd starts a containerd for a test. Where its programs are missing, the test is
// skipped, and fails in the gate.
func startContainerd(t *testing.T) *containerdtest.Daemon {
	t.Helper()
	if missing := containerdtest.Missing(); missing != "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	daemon, err := containerdtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Stop(); err != nil {
			t.Error(err)
		}
	})
	return daemon
}

func TestToolsInContainers(t *testing.T) {
	daemon := startContainerd(t)
	libexec, work := buildTools(t), t.TempDir()
	t.Setenv("AGENTCTL_LIBEXEC", libexec)
	t.Setenv("AGENTCTL_STATE", filepath.Join(work, "state"))
	t.Setenv("CONTAINERD_ADDRESS", daemon.Address)
	t.Setenv("BOXED_TOKEN", "a-secret-of-the-host")

	put(t, filepath.Join(work, "src", "main.go"), boxedProgram)
	put(t, filepath.Join(work, "src", "go.mod"), "module boxed\n\ngo 1.26\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(work, "boxed"), ".")
	build.Dir, build.Env = filepath.Join(work, "src"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	serve := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }))
		t.Cleanup(s.Close)
		return s.URL
	}
	listed, other := serve(), serve()
	files := filepath.Join(work, "files")
	put(t, filepath.Join(files, "a.txt"), "text\n")
	put(t, filepath.Join(files, ".env"), "KEY=canary\n")
	beside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"allowed.txt", "sibling.txt", "d/read.txt"} {
		put(t, filepath.Join(beside, name), "outside "+name+"\n")
	}
	put(t, filepath.Join(beside, "empty.txt"), "")
	for name, mode := range map[string]os.FileMode{"allowed.txt": 0o644, "empty.txt": 0o666, "d": 0o755, "d/read.txt": 0o644} { // a container has a user of its own
		if err := os.Chmod(filepath.Join(beside, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(work, "m", "a.yaml"), fmt.Sprintf(strings.ReplaceAll(boxedManifest, "BESIDE", beside),
		image(t, filepath.Join(libexec, "agentctl-tools")), image(t, filepath.Join(work, "boxed")), strings.TrimPrefix(listed, "http://"), listed, other))

	out, err := exec.CommandContext(t.Context(), "agentctl", "run", "-f", filepath.Join(work, "m"), "-p", "go", "--workspace", files, "-o", "jsonl").Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderrOf(err))
	}
	var texts []string
	for line := range strings.Lines(string(out)) {
		var e struct {
			Type string
			Data message.ToolResult
		}
		if json.Unmarshal([]byte(line), &e) == nil && strings.HasPrefix(e.Type, "tool.result") {
			texts = append(texts, e.Data.Text)
		}
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		"1: text", `args {"n":1}`, "root false", "token ***", "read a file: done", "write a file: done", `what nobody may read: ""`,
		"write outside: refused", "1: outside allowed.txt", "created " + beside + "/empty.txt", "read.txt", "listed: 200 OK hello", "other: 403 Forbidden NetworkDenied",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no call has told %q:\n%s", want, all)
		}
	}
	if b, err := os.ReadFile(filepath.Join(beside, "empty.txt")); err != nil || string(b) != "changed" {
		t.Errorf("the file outside that was to be changed holds %q, %v", b, err)
	}
	if strings.Contains(all, "outside sibling.txt") || strings.Count(string(out), `"tool.error"`) != 2 {
		t.Errorf("a path beside the one that was allowed, or one that an image has itself, was read:\n%s", out)
	}
	if strings.Contains(string(out), "a-secret-of-the-host") || strings.Contains(string(out), "canary") {
		t.Error("a secret has been told")
	}
	if !strings.Contains(string(out), `"files":[{"path":"b.txt","change":"added"}]`) {
		t.Error("the file that was written is no change of the run")
	}
	diagnosis, err := exec.CommandContext(t.Context(), "agentctl", "doctor", "-o", "json").CombinedOutput()
	if err != nil || !strings.Contains(string(diagnosis), `"containers": true`) {
		t.Errorf("after the run doctor says %v\n%s", err, diagnosis)
	}
}

const boxedManifest = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: look}, {name: folder}, {name: change}, {name: boxed}], policyRefs: [{name: p}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
  permissions: [{permission: read, pattern: "*.env", action: deny}]
  rules: [{name: outside, action: allow, when: "paths.exists(p, p.real in ['BESIDE/allowed.txt', 'BESIDE/empty.txt', 'BESIDE/d', '/etc/passwd'])"}]
  default: allow
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: look}
spec:
  risk: R0
  source: {container: {image: %[1]q, tool: read}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: folder}
spec:
  risk: R0
  source: {container: {image: %[1]q, tool: list}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: change}
spec:
  risk: R1
  source: {container: {image: %[1]q, tool: write}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: boxed}
spec:
  description: Tells what it sees.
  parameters: {type: object, properties: {n: {type: integer}}}
  source: {container: {image: %[2]q, protocol: Exec}}
  workspaceAccess: ReadWrite
  network: {mode: Proxy, allow: [%[3]q]}
  env:
  - {name: TOKEN, valueFrom: {env: BOXED_TOKEN}}
  - {name: LISTED, value: %[4]q}
  - {name: OTHER, value: %[5]q}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  provider: scripted
  scripted: {steps: [{calls: [{tool: look, args: {path: a.txt}}]}, {calls: [{tool: look, args: {path: BESIDE/allowed.txt}}]},
    {calls: [{tool: folder, args: {path: BESIDE/d}}]}, {calls: [{tool: change, args: {path: BESIDE/empty.txt, content: changed}}]},
    {calls: [{tool: look, args: {path: BESIDE/sibling.txt}}]}, {calls: [{tool: look, args: {path: /etc/passwd}}]}, {calls: [{tool: boxed, args: {n: 1}}]}, {say: done}]}
`

// image makes an image of a program and returns its reference.
func image(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "agentctl", "image", "build", "--from-binary", program, "--output-file", filepath.Join(t.TempDir(), "i.tar")).Output()
	if err != nil {
		t.Fatalf("make an image of %s: %v\n%s", program, err, stderrOf(err))
	}
	return strings.TrimSpace(string(out))
}

func stderrOf(err error) string {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // exec returns it as it is
		return string(exit.Stderr)
	}
	return ""
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
