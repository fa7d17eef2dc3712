package runner

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// researchWeb runs manifests/web-research with its server: other sites are refused, and
// the answer comes from a listed page. Without a sandbox nothing is run.
func researchWeb(t *testing.T, p place) {
	t.Helper()
	var address string
	p.manifests, address = webResearch(t)
	want(t, p.run(t), reason.IsolationUnavailable)
	out := p.inSandbox(t)
	want(t, out, reason.Completed)
	refused := 0
	for _, c := range out.Result().ToolCalls {
		switch other := strings.Contains(string(c.Args), ".example"); {
		case other && *c.Decision == "deny" && *c.Rule == "web-research/not-listed":
			refused++
		case other || *c.Decision != "allow" || c.Error != nil:
			t.Errorf("%s %s: %s by %s, error %v", c.Tool, c.Args, *c.Decision, *c.Rule, c.Error)
		}
	}
	if refused != 2 {
		t.Errorf("%d calls of other sites were denied, want the result's and the comment's", refused)
	}
	if got := out.Result().Output; got != "Go has the package slices since version 1.21: http://"+address+"/slices" {
		t.Errorf("the answer is %q", got)
	}
	if allowed, denied := connections(t, out, address); allowed == 0 || denied != 0 {
		t.Errorf("%d connections to the server, %d refused", allowed, denied)
	}
}

// TestWebResearchIsHeldByItsNetwork opens the policy of manifests/web-research: what the
// tools can connect to stays what their manifests say.
func TestWebResearchIsHeldByItsNetwork(t *testing.T) {
	p := newPlace(t, "", nil)
	var address string
	p.manifests, address = webResearch(t)
	write(t, filepath.Join(p.manifests, "policy.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: web-research}\n"+
		"spec:\n  rules: [{name: all, match: {builtins: [websearch, webfetch]}, action: allow}]\n")
	out := p.inSandbox(t)
	want(t, out, reason.Completed)
	failed := 0
	for _, c := range out.Result().ToolCalls {
		if !strings.Contains(string(c.Args), ".example") {
			continue
		}
		if *c.Decision != "allow" || c.Error == nil {
			t.Errorf("%s %s: %s, error %v", c.Tool, c.Args, *c.Decision, c.Error)
		}
		failed++
	}
	if _, denied := connections(t, out, address); failed != 2 || denied != 2 {
		t.Errorf("%d calls of other sites, %d connections refused, want two each", failed, denied)
	}
}

// inSandbox runs with the shipped tools contained, and skips the test on a host that
// cannot do so.
func (p place) inSandbox(t *testing.T) *Outcome {
	t.Helper()
	buildSandboxAndTools(t)
	out := p.run(t, func(o *RunOptions) { o.AllowUnsandboxed = false })
	if out.Run.Finished.Reason == string(reason.IsolationUnavailable) {
		t.Skipf("this host gives no sandbox: %s", out.Run.Finished.Message)
	}
	return out
}

// connections counts what the proxy has decided, and reports a connection elsewhere.
func connections(t *testing.T, out *Outcome, address string) (allowed, denied int) {
	t.Helper()
	for _, e := range told(t, out) {
		c, ok := e.Data.(event.EgressConnection)
		switch {
		case !ok:
		case c.Decision == message.Deny:
			denied++
		case c.Address != address:
			t.Errorf("%s:%d was reached at %s", c.Host, c.Port, c.Address)
		default:
			allowed++
		}
	}
	return allowed, denied
}

// webResearch is a copy of manifests/web-research whose server listens on a free port.
func webResearch(t *testing.T) (folder, address string) {
	t.Helper()
	const source = "../manifests/web-research"
	program := filepath.Join(t.TempDir(), "site")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+source+"/site").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.CommandContext(t.Context(), program, "-listen", "127.0.0.1:0")
	server.Stderr = t.Output()
	printed, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()         // it was killed
	})
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimPrefix(strings.TrimSpace(line), "http://")
	_, port, _ := strings.Cut(address, ":")
	folder = t.TempDir()
	files, err := filepath.Glob(filepath.Join(source, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, filepath.Base(f)), strings.ReplaceAll(string(text), "8888", port))
	}
	return folder, address
}
