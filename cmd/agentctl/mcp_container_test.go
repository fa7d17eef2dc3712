package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// boxedServer is an MCP server: it says what it sees, dies, or never answers.
const boxedServer = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func get(u string) string {
	proxy, _ := url.Parse(os.Getenv("HTTP_PROXY"))
	res, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get(u)
	if err != nil {
		return err.Error()
	}
	b, _ := io.ReadAll(res.Body)
	return res.Status + " " + string(b)
}

func look() string {
	text, _ := os.ReadFile("a.txt")
	secret, _ := os.ReadFile(".env")
	return fmt.Sprintf("root %v\nread %q\nhidden %q\nwrite %v\noutside %v\ntoken %s\nlisted: %s\nother: %s", os.Getuid() == 0, text, secret,
		os.WriteFile("b.txt", nil, 0o644) == nil, os.WriteFile("/x", nil, 0o644) == nil, os.Getenv("TOKEN"), get(os.Getenv("LISTED")), get(os.Getenv("OTHER")))
}

// hang leaves a process of its own session behind, says so, and never answers.
func hang(token json.RawMessage) {
	c := exec.Command("/proc/self/exe", "sleep")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1,\"message\":\"hangs now\"}}\n", token)
}

func main() {
	mode := os.Args[1]
	switch mode {
	case "sleep", "mute":
		time.Sleep(time.Hour)
	case "exit":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name string
				Meta struct{ ProgressToken json.RawMessage } ` + "`json:\"_meta\"`" + `
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		var result any
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "boxed", "version": "1"}}
		case "tools/list":
			var all []any
			for _, name := range []string{"look", "die", "hang"} {
				all = append(all, map[string]any{"name": name, "description": name, "inputSchema": map[string]any{"type": "object"}})
			}
			result = map[string]any{"tools": all}
		case "tools/call":
			switch m.Params.Name {
			case "die":
				os.Exit(4)
			case "hang":
				hang(m.Params.Meta.ProgressToken)
				continue
			}
			if m.Params.Name != "look" {
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":\"no such tool\"}}\n", m.ID)
				continue
			}
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": look()}}}
		default:
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n", m.ID)
			continue
		}
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		fmt.Println(string(b))
	}
}
`

const boxedServerManifest = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: srv}], policyRefs: [{name: p}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec: {permissions: [{permission: read, pattern: "*.env", action: deny}], default: allow}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: srv}
spec:
  source: {mcp: {container: {image: %[1]q, command: [/tool, %[2]s]}}}
  workspaceAccess: ReadWrite
  limits: {timeout: %[3]s}
  network: {mode: Proxy, allow: [%[4]q]}
  env:
  - {name: TOKEN, valueFrom: {env: BOXED_TOKEN}}
  - {name: LISTED, value: %[5]q}
  - {name: OTHER, value: %[6]q}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  provider: scripted
  scripted:
    steps:
`

// boxedServers is a host with a containerd, and an image of the server.
type boxedServers struct {
	daemon                     *containerdtest.Daemon
	work, image, listed, other string
}

func newBoxedServers(t *testing.T) *boxedServers {
	t.Helper()
	daemon := startContainerd(t)
	b := &boxedServers{daemon: daemon, work: t.TempDir()}
	t.Setenv("AGENTCTL_LIBEXEC", buildTools(t))
	t.Setenv("AGENTCTL_STATE", filepath.Join(b.work, "state"))
	t.Setenv("CONTAINERD_ADDRESS", daemon.Address)
	t.Setenv("BOXED_TOKEN", "a-secret-of-the-host")
	put(t, filepath.Join(b.work, "src", "main.go"), boxedServer)
	put(t, filepath.Join(b.work, "src", "go.mod"), "module boxed\n\ngo 1.26\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(b.work, "tool"), ".")
	build.Dir, build.Env = filepath.Join(b.work, "src"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b.image = image(t, filepath.Join(b.work, "tool"))
	for _, at := range []*string{&b.listed, &b.other} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }))
		t.Cleanup(s.Close)
		*at = s.URL
	}
	put(t, filepath.Join(b.work, "files", "a.txt"), "text\n")
	put(t, filepath.Join(b.work, "files", ".env"), "KEY=canary\n")
	return b
}

// run is a run with the server in a mode, whose model makes these calls.
func (b *boxedServers) run(t *testing.T, mode, timeout, steps string, more ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.yaml")
	put(t, file, fmt.Sprintf(boxedServerManifest, b.image, mode, timeout, strings.TrimPrefix(b.listed, "http://"), b.listed, b.other)+steps)
	return exec.CommandContext(t.Context(), "agentctl", append([]string{"run", "-f", file, "-p", "go", "--workspace", filepath.Join(b.work, "files"), "-o", "jsonl"}, more...)...)
}

// gone waits until nothing of a container is left.
func (b *boxedServers) gone(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		shims, mounts := b.daemon.Shims(), b.daemon.Mounts()
		if len(shims)+len(mounts) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("shims %v and mounts %v are left", shims, mounts)
		}
	}
}

const callOf = "    - calls: [{tool: srv_%s, args: {}}]\n"

func TestAnMCPServerInAnImage(t *testing.T) {
	b := newBoxedServers(t)
	t.Run("is contained like any tool", func(t *testing.T) {
		steps := fmt.Sprintf(callOf+callOf+callOf, "look", "die", "look") + "    - say: done\n"
		out, err := b.run(t, "serve", "1m", steps).Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, stderrOf(err))
		}
		all := resultTexts(string(out))
		for _, want := range []string{
			"root false", `read "text\n"`, `hidden ""`, "write true", "outside false", "token ***", "listed: 200 OK hello", "other: 403 Forbidden NetworkDenied",
			"the MCP server ended during the call: it ended with exit code 4",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("no call has said %q:\n%s", want, all)
			}
		}
		if strings.Count(all, "listed: 200 OK hello") != 2 {
			t.Errorf("after its death the server was not started again:\n%s", all)
		}
		if strings.Contains(string(out), "a-secret-of-the-host") || strings.Contains(string(out), "canary") {
			t.Error("a secret has been shown")
		}
		if !strings.Contains(string(out), `"files":[{"path":"b.txt","change":"added"}]`) {
			t.Error("the file that was written is no change of the run")
		}
		b.gone(t)
	})
	t.Run("never answers a call", func(t *testing.T) {
		out, err := b.run(t, "serve", "2s", fmt.Sprintf(callOf, "hang")+"    - say: done\n").Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, stderrOf(err))
		}
		if all := resultTexts(string(out)); !strings.Contains(all, "the server did not answer in time") {
			t.Error(all)
		}
		b.gone(t)
	})
	t.Run("never says hello", func(t *testing.T) {
		out, err := b.run(t, "mute", "1m", "    - say: done\n", "--timeout", "5s").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "of 5s passed") {
			t.Errorf("%v\n%s", err, out)
		}
		b.gone(t)
	})
	t.Run("ends at once", func(t *testing.T) {
		out, err := b.run(t, "exit", "1m", "    - say: done\n").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "it ended with exit code 3, and wrote: no licence") {
			t.Errorf("%v\n%s", err, out)
		}
		b.gone(t)
	})
	t.Run("is ended when the run is cancelled", func(t *testing.T) {
		c := b.hanging(t)
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil {
			t.Error("a run that was cancelled has succeeded")
		}
		b.gone(t)
	})
	t.Run("is removed by the next run when the runner was killed", func(t *testing.T) {
		c := b.hanging(t)
		_ = c.Process.Kill()
		_ = c.Wait()
		if len(b.daemon.Shims()) == 0 {
			t.Fatal("nothing was left: the case tests nothing")
		}
		for end := time.Now().Add(patience); len(b.daemon.Shims()) > 0; {
			if out, err := b.run(t, "serve", "1m", fmt.Sprintf(callOf, "look")+"    - say: done\n").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if time.Now().After(end) {
				t.Fatalf("shims %v are left", b.daemon.Shims())
			}
		}
		b.gone(t)
	})
	t.Run("is tried by its manifest", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "m.yaml")
		put(t, file, fmt.Sprintf(boxedServerManifest, b.image, "serve", "1m", strings.TrimPrefix(b.listed, "http://"), b.listed, b.other)+"    - say: done\n")
		c := exec.CommandContext(t.Context(), "agentctl", "mcp", "test", "srv", "-f", file, "--call", "look")
		c.Dir = filepath.Join(b.work, "files")
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "root false") || strings.Contains(string(out), "a-secret-of-the-host") {
			t.Errorf("%v\n%s", err, out)
		}
		b.gone(t)
	})
}

// hanging is a run in whose call the server does not answer.
func (b *boxedServers) hanging(t *testing.T) *exec.Cmd {
	t.Helper()
	c := b.run(t, "serve", "10m", fmt.Sprintf(callOf, "hang")+"    - say: done\n")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "hangs now") {
			go func() { // ends with the output, which ends with the run
				for lines.Scan() {
				}
			}()
			return c
		}
	}
	t.Fatalf("the call did not begin: %v", c.Wait())
	return nil
}

// resultTexts are what the model reads of the calls.
func resultTexts(events string) string {
	var texts []string
	for line := range strings.Lines(events) {
		var e struct {
			Type string
			Data message.ToolResult
		}
		if json.Unmarshal([]byte(line), &e) == nil && (strings.HasPrefix(e.Type, "tool.result") || e.Type == "tool.error") {
			texts = append(texts, e.Data.Text)
		}
	}
	return strings.Join(texts, "\n")
}
