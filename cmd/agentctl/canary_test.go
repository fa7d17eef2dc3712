package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/telemetry/otlptest"
)

// canaries are the secrets of the run, by where their values come from.
var canaries = map[string]string{
	"the key of the model, a variable": "sk-qV7+x/Wm3=Zt&Jd9",
	"a variable of a tool":             `tk<Hq4/Xb8+Nc2&é'Ls"Yp6\Rf9>`,
	"a file of a tool":                 "fl Gw5+Km1/Dv7==Bz3?Tj0",
	"a program of a tool":              "ex:Uc6%Ox2@Ie8#Ny4*Mb1",
	"a variable of an MCP server":      "mc~Ra9^Fk5!Sg3$Qe7;Wh2",
}

// canaryForms are the ways in which a value is written.
func canaryForms(v string) map[string]string {
	quote := func(text string, escapeHTML bool) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escapeHTML)
		_ = e.Encode(text) // it is a text
		s := strings.TrimSpace(b.String())
		return s[1 : len(s)-1]
	}
	parts := func(text string, size int) string {
		var all []string
		for part := range slices.Chunk([]rune(text), size) {
			all = append(all, string(part))
		}
		return strings.Join(all, "\n")
	}
	b := []byte(v)
	return map[string]string{
		"plain": v, "json": quote(v, false), "json for HTML": quote(v, true), "json in json": quote(quote(v, false), false),
		"html": html.EscapeString(v), "html entities": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(v),
		"query": url.QueryEscape(v), "path": url.PathEscape(v),
		"base64": base64.StdEncoding.EncodeToString(b), "base64 after one": base64.StdEncoding.EncodeToString([]byte("x" + v)), "base64 after two": base64.StdEncoding.EncodeToString([]byte("xx" + v)),
		"base64url": base64.URLEncoding.EncodeToString(b), "base64url after one": base64.RawURLEncoding.EncodeToString([]byte("y" + v)),
		"hex": hex.EncodeToString(b), "HEX": strings.ToUpper(hex.EncodeToString(b)),
		"lines": parts(v, 7), "lines of base64": parts(base64.StdEncoding.EncodeToString(b), 9), "lines of hex": parts(hex.EncodeToString(b), 11),
	}
}

// shownCanary is how many bytes of a form may be read by chance: what an encoding shares
// with its neighbours, and a few characters at the ends of what was hidden.
const shownCanary = 8

// planted are the places that canaries were written into.
type planted struct{ places []string }

// at returns a text with every form of every canary, and a mark of the place.
func (p *planted) at(place string) string {
	p.places = append(p.places, place)
	b := strings.Builder{}
	b.WriteString("[" + place + "]")
	for _, from := range slices.Sorted(maps.Keys(canaries)) {
		forms := canaryForms(canaries[from])
		for _, as := range slices.Sorted(maps.Keys(forms)) {
			b.WriteString("\n- " + forms[as])
		}
	}
	return b.String() + "\n"
}

// word is at for where a single line is expected.
func (p *planted) word(place string) string {
	return strings.NewReplacer("\n- ", " | ", "\n", " ").Replace(strings.TrimSpace(p.at(place)))
}

// canaryWindows are the parts of forms that must not be read anywhere.
func canaryWindows() map[string]string {
	windows := map[string]string{}
	for from, v := range canaries {
		for as, form := range canaryForms(v) {
			form = strings.Join(strings.Fields(form), "")
			for i := 0; i+shownCanary < len(form); i++ {
				windows[form[i:i+shownCanary+1]] = from + " as " + as
			}
		}
	}
	return windows
}

// findCanaries returns what can be read of canaries in a text, also after line breaks and
// the escapes of JSON are removed.
func findCanaries(windows map[string]string, text []byte) (found []string) {
	seen := map[string]bool{}
	look := func(how, text string) {
		for i := 0; i+shownCanary < len(text); i++ {
			if what, ok := windows[text[i:i+shownCanary+1]]; ok && !seen[what] {
				seen[what] = true
				found = append(found, fmt.Sprintf("%s, %s: %q in %q", what, how, text[i:i+shownCanary+1], text[max(0, i-50):min(len(text), i+50)]))
			}
		}
	}
	look("as it is", string(text))
	joined := strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "", `\n`, "").Replace(string(text))
	look("joined", joined)
	look("unescaped", strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(joined))
	return found
}

func TestEveryFormOfACanaryIsFound(t *testing.T) {
	windows := canaryWindows()
	for from, v := range canaries {
		for as, form := range canaryForms(v) {
			if len(findCanaries(windows, []byte("before "+form+" after"))) == 0 {
				t.Errorf("%s as %s: it is not found", from, as)
			}
			if b := object(map[string]string{"text": form}); len(findCanaries(windows, []byte(b))) == 0 {
				t.Errorf("%s as %s in JSON: it is not found", from, as)
			}
		}
	}
	if found := findCanaries(windows, []byte(`{"type":"tool.result","text":"*** and nothing else","hash":"sha256:9a0364b9e99bb480dd25e1f0284c8555"}`)); len(found) > 0 {
		t.Errorf("found where there is none: %q", found)
	}
}

// spec is a part of a manifest.
type spec map[string]any

// document is an object of the API as JSON, which is YAML.
func document(kind, name string, s spec) string {
	return object(map[string]any{"apiVersion": "agentctl.dev/v1alpha1", "kind": kind, "metadata": spec{"name": name}, "spec": s}) + "\n---\n"
}

// object is JSON in one line.
func object(v any) string {
	b, _ := json.Marshal(v) // texts and numbers
	return string(b)
}

// says is a script that prints a text.
func says(text string) string { return "cat <<'THE_END'\n" + text + "\nTHE_END\n" }

// named are references.
func named(names ...string) (all []spec) {
	for _, n := range names {
		all = append(all, spec{"name": n})
	}
	return all
}

// from is a variable with the value of a variable of agentctl.
func from(name, variable string) spec {
	return spec{"name": name, "valueFrom": spec{"env": variable}}
}

// canaryServer is an MCP server that says canaries wherever a server can.
func canaryServer(p *planted) string {
	none := spec{"type": "object"}
	list := object(spec{"tools": []spec{
		{"name": "good", "description": "Says something.", "inputSchema": none},
		{"name": "bad", "description": "Fails.", "inputSchema": none},
		{"name": "broken", "description": "Breaks.", "inputSchema": none},
		{"name": "leaky", "description": p.word("description of a function of an MCP server"), "inputSchema": none},
	}})
	answer := func(field, value string) string {
		return `printf '{"jsonrpc":"2.0","id":%s,"` + field + `":' "$id"; ` + says(value+"}")
	}
	return "while read -r line; do\nid=$(printf %s \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\ncase \"$line\" in\n" +
		`*'"method":"initialize"'*) ` + answer("result", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`) + ";;\n" +
		`*'"method":"tools/list"'*) ` + answer("result", list) + ";;\n" +
		`*'"name":"good"'*) ( ` + says(p.at("standard error of an MCP server")) + ") >&2\n" +
		says(object(spec{"jsonrpc": "2.0", "method": "notifications/message", "params": spec{"level": "info", "data": p.at("log message of an MCP server")}})) +
		answer("result", object(spec{"content": []spec{{"type": "text", "text": p.at("result of an MCP server")}}, "structuredContent": spec{"text": p.at("structured result of an MCP server")}})) + ";;\n" +
		`*'"name":"bad"'*) ` + answer("result", object(spec{"isError": true, "content": []spec{{"type": "text", "text": p.at("error result of an MCP server")}}})) + ";;\n" +
		`*'"name":"broken"'*) ` + answer("error", object(spec{"code": -32000, "message": p.at("protocol error of an MCP server")})) + ";;\n" +
		"*) [ -z \"$id\" ] || printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}\\n' \"$id\" ;;\nesac\ndone\n"
}

// canaryAnswers are what the model says, and its server.
func canaryAnswers(p *planted, header string) []modeltest.Step {
	call := func(id, tool string, args any) modeltest.Call {
		return modeltest.Call{ID: id, Tool: tool, Args: object(args)}
	}
	finding := spec{"file": "main.go", "line": 3, "severity": "high", "rule": p.word("rule of a finding"), "message": p.at("message of a finding")}
	return []modeltest.Step{
		modeltest.Refuse(http.StatusServiceUnavailable, http.Header{"X-Request-Id": {header}}, modeltest.Chat.Fault(http.StatusServiceUnavailable, p.word("error of the model server"), "")),
		modeltest.Answer{Text: p.at("text of the model"), Reasoning: p.at("reasoning of the model"), TextSize: 5, ArgsSize: 7, Calls: []modeltest.Call{
			call("c1", "bash", spec{"command": "cat > said.txt <<'E'\n" + p.at("command of a call") + "\nE\ncat said.txt", "description": p.word("description of a call")}),
			call("c2", "speak", spec{}),
			call("c3", "fail", spec{}),
			call("c4", "echo", spec{"text": p.at("standard input of a program"), p.word("name of an argument"): 1}),
			call("c5", "refused", spec{"text": p.at("arguments of a call that is denied, and the message of the rule")}),
			call("c6", "asked", spec{"text": p.at("arguments of a call that is asked about, and the question")}),
			call("c7-"+canaries["a file of a tool"], "no-such-"+canaries["a file of a tool"], spec{"text": p.at("arguments for a tool that does not exist")}),
			{ID: "c8", Tool: "read", Args: `{"path": ` + object(p.word("arguments that are not JSON"))},
		}}.Step(),
		modeltest.Answer{Text: "files", Calls: []modeltest.Call{
			call("d1", "read", spec{"path": "notes.txt"}),
			call("d2", "grep", spec{"pattern": "file of", "path": "notes.txt"}),
			call("d3", "read", spec{"path": p.word("path of a file that is not there")}),
			call("d4", "write", spec{"path": "new.txt", "content": p.at("content of a file that is written")}),
			call("d6", "server_good", spec{"text": p.at("arguments for an MCP server")}),
			call("d7", "server_bad", spec{}),
			call("d8", "server_broken", spec{}),
			call("d9", "task", spec{"agent": "helper", "prompt": p.at("prompt of a subagent")}),
			call("d10", "publish", spec{"name": "note", "body": p.at("item to be published")}),
			call("d11", "publish", spec{"name": "hook", "data": spec{"text": p.at("data to be published")}}),
		}}.Step(),
		modeltest.Answer{Text: object(spec{"findings": []spec{finding}, "notes": p.at("answer of the run")})}.Step(),
	}
}

// canaryManifests are the agents, of which one is refused by its model, and what they use.
func canaryManifests(p *planted, dir, asked, refusing string) string {
	at := func(name string) string { return filepath.Join(dir, name) }
	text := spec{"type": "object", "properties": spec{"text": spec{"type": "string"}}}
	tool := func(name, program string, parameters spec) string {
		return document("Tool", name, spec{
			"description": p.word("description of the tool " + name), "risk": "R1", "source": spec{"exec": spec{"command": []string{at(program)}}}, "parameters": parameters,
			"env": []spec{from("TOKEN", "CANARY_TOOL"), {"name": "FILED", "valueFrom": spec{"file": at("filed")}}, {"name": "PROGRAM", "valueFrom": spec{"exec": []string{at("secret.sh")}}}},
		})
	}
	model := func(name, url string) string {
		return document("Model", name, spec{
			"provider": "openai", "model": name + "-2025-08-07", "baseURL": url, "retry": spec{"attempts": 2, "maxDelay": "20ms"},
			"apiKey": spec{"valueFrom": spec{"env": "CANARY_MODEL"}},
		})
	}
	word := spec{"type": "string"}
	findings := spec{"type": "array", "items": spec{"type": "object", "properties": spec{"file": word, "line": spec{"type": "integer"}, "severity": word, "rule": word, "message": word}}}
	agent := spec{
		"modelRef": spec{"name": "asked"}, "instructions": p.at("instructions of the agent"), "policyRefs": named("p"), "contextFiles": []string{"AGENTS.md"},
		"tools":     named("bash", "speak", "fail", "echo", "refused", "asked", "read", "grep", "write", "server"),
		"subagents": named("helper"), "approvals": spec{"onAsk": "Deny"},
		"inputs":   spec{"schema": spec{"type": "object", "properties": spec{"topic": word}}},
		"evidence": []spec{{"name": "tests", "expression": "calls.passed('go', 'test')", "message": "no test has passed"}},
		"publish": []spec{
			{"name": "note", "type": "Comment", "maxBytes": 60000, "forge": spec{"type": "GitHub", "repository": "acme/shop", "number": "7"}, "credential": spec{"valueFrom": spec{"env": "NOT_SET"}}},
			{"name": "hook", "type": "Webhook", "maxBytes": 60000, "url": "https://hooks.example.com/x"},
		},
		"output": spec{"schema": spec{"type": "object", "properties": spec{"notes": word, "findings": findings}}},
	}
	failing := maps.Clone(agent)
	failing["modelRef"] = spec{"name": "refusing"}
	return document("Agent", "a", agent) + document("Agent", "failing", failing) +
		document("Agent", "helper", spec{"mode": "All", "description": "Helps.", "modelRef": spec{"name": "helper"}, "instructions": p.at("instructions of a subagent")}) +
		document("Model", "helper", spec{"provider": "scripted", "scripted": spec{"steps": []spec{{"say": p.at("answer of a subagent")}}}}) +
		model("asked", asked) + model("refusing", refusing) +
		document("Tool", "bash", spec{"source": spec{"builtin": spec{"name": "bash"}}, "env": []spec{from("TOKEN", "CANARY_TOOL")}, "isolation": spec{"bind": "Off"}}) +
		tool("speak", "speak.sh", text) + tool("fail", "fail.sh", text) + tool("echo", "echo.sh", spec{"type": "object"}) + tool("refused", "echo.sh", text) + tool("asked", "echo.sh", text) +
		document("Tool", "server", spec{"risk": "R1", "source": spec{"mcp": spec{"stdio": spec{"command": []string{at("mcp.sh")}}}}, "env": []spec{from("TOKEN", "CANARY_MCP")}}) +
		document("Policy", "p", spec{"rules": []spec{
			{"name": "never", "match": spec{"tools": []string{"refused"}}, "action": "deny", "messageExpression": "'no: ' + call.args.text"},
			{"name": "who", "match": spec{"tools": []string{"asked"}}, "action": "ask", "messageExpression": "'why: ' + call.args.text"},
			{"name": "fine", "match": spec{"tools": []string{"*"}}, "action": "allow"},
		}})
}

// signingKey is a key for receipts.
func signingKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TestNoSecretIsInWhatARunLeaves writes every form of every secret of a run into every
// place from which a text comes into it, and looks for them in all that comes out.
func TestNoSecretIsInWhatARunLeaves(t *testing.T) {
	needSandbox(t)
	libexec, dir, p := buildTools(t), t.TempDir(), &planted{}
	at := func(name string) string { return filepath.Join(dir, name) }
	file := func(name, text string, mode fs.FileMode) {
		put(t, at(name), text)
		if err := os.Chmod(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	header := strings.Map(func(r rune) rune { // what a header can hold
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, p.word("header of the model server"))
	server, err := modeltest.NewServer(canaryAnswers(p, header)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", header)
		w.Header().Set("Set-Cookie", header)
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	refusing, err := modeltest.NewServer(modeltest.Refuse(http.StatusUnauthorized, http.Header{"X-Request-Id": {header}}, modeltest.Chat.Fault(http.StatusUnauthorized, p.word("error that ends a run"), "")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(refusing.Close)

	const shell = "#!/bin/sh\n"
	file("speak.sh", shell+says(p.at("output of a program"))+`printf '%s\n' "$TOKEN" "$FILED" "$PROGRAM"
printf %s "$TOKEN" | base64; printf %s "$FILED" | od -An -tx1; printf %s "$PROGRAM" | od -c
for part in 1-4 5-9 10-14 15-; do printf %s "$FILED" | cut -zc "$part" | tr -d '\0'; sleep 0.02; done
touch "named $PROGRAM"
`, 0o700)
	file("fail.sh", shell+says(p.at("output of a program that fails"))+"( "+says(p.at("standard error of a program that fails"))+") >&2\nexit 3\n", 0o700)
	file("echo.sh", shell+"cat\nenv\n", 0o700)
	file("secret.sh", shell+"printf %s '"+canaries["a program of a tool"]+"'\n", 0o700)
	file("mcp.sh", shell+canaryServer(p), 0o700)
	file("filed", canaries["a file of a tool"]+"\n", 0o600)
	file("set/all.yaml", canaryManifests(p, dir, front.URL+"/v1", refusing.URL), 0o600)
	file("src/AGENTS.md", p.at("context file"), 0o600)
	file("src/notes.txt", p.word("file of the workspace")+"\n", 0o600) // in a line: see SECURITY.md about lines that a tool numbers
	file("attached.png", "\x89PNG\r\n\x1a\n0000"+p.at("attached file"), 0o600)
	file("out/step.md", "", 0o600)
	file("out/output", "", 0o600)
	file("receipt.key", signingKey(t), 0o600)
	var traced bytes.Buffer
	collector := otlptest.Start(&traced)

	env := append(os.Environ(), "AGENTCTL_STATE="+at("state"), "AGENTCTL_LIBEXEC="+libexec,
		"CANARY_MODEL="+canaries["the key of the model, a variable"], "CANARY_TOOL="+canaries["a variable of a tool"], "CANARY_MCP="+canaries["a variable of an MCP server"],
		"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
		"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+at("out/step.md"), "GITHUB_OUTPUT="+at("out/output"))
	surfaces := map[string][]byte{}
	agentctl := func(code int, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "agentctl", args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // judged by its code
		name := strings.Join(args[:min(5, len(args))], " ")
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("agentctl %s: exit code %d, want %d\n%s\n%.20000s", name, got, code, errs.String(), out.String())
		}
		surfaces["stdout of agentctl "+name], surfaces["stderr of agentctl "+name] = out.Bytes(), errs.Bytes()
	}
	run := func(code int, agent string, more ...string) {
		t.Helper()
		agentctl(code, append([]string{
			"run", "-f", "set", "--agent", agent, "--workspace", "src", "-p", p.at("prompt of " + agent), "--input", "topic=" + p.word("input of "+agent), "--ci", "github",
			"--report", "junit=out/" + agent + ".xml,sarif=out/" + agent + ".sarif,summary=out/" + agent + ".md,json=out/" + agent + ".json,codequality=out/" + agent + "-quality.json",
			"--receipt", "out/" + agent + "-receipt.json", "--receipt-key", "receipt.key",
		}, more...)...)
	}
	run(6, "a", "-o", "json", "--record", "out/a.jsonl")
	agentctl(1, "logs", "@latest")
	agentctl(0, "events", "@latest", "-o", "jsonl")
	agentctl(0, "describe", "run/@latest")
	agentctl(0, "audit", "verify", "@latest")
	agentctl(0, "audit", "export", "@latest")
	run(4, "failing", "--attach", "attached.png")
	agentctl(0, "describe", "run/@latest", "--state", at("state"))
	agentctl(0, "get", "runs")
	collector.Close()
	surfaces["telemetry"] = traced.Bytes()
	for _, top := range []string{"state", "out"} {
		err := filepath.WalkDir(at(top), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(dir, path) // both are absolute
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "workspace":
				return filepath.SkipDir // the files that the programs have written, as they have written them
			case !d.Type().IsRegular():
				return nil
			}
			surfaces["the name of "+name] = []byte(name)
			surfaces[name], err = os.ReadFile(path) //nolint:gosec // of this test
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var envelope struct {
		Payload []byte `json:"payload"`
	}
	if err := json.Unmarshal(surfaces["out/a-receipt.json"], &envelope); err != nil || len(envelope.Payload) == 0 {
		t.Errorf("the receipt has no payload: %v", err)
	}
	surfaces["the payload of the receipt"] = envelope.Payload

	for _, kind := range []string{
		"/events-", "audit.log.jsonl", "/blobs/", "head.json", "out/a.jsonl", "out/a.xml", "out/a.sarif", "out/a.md", "out/a.json", "out/a-quality.json", "out/a-receipt.json",
		"out/failing.json", "out/step.md", "out/output", "telemetry", "stdout of", "stderr of",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(surfaces)), func(name string) bool { return strings.Contains(name, kind) && len(surfaces[name]) > 0 }) {
			t.Errorf("nothing was searched of %s", kind)
		}
	}
	p.arrived(t, surfaces)
	for name, text := range surfaces {
		surfaces[name] = p.withoutGiven(name, text)
	}
	total, windows := 0, canaryWindows()
	for _, name := range slices.Sorted(maps.Keys(surfaces)) {
		for i, found := range findCanaries(windows, surfaces[name]) {
			if total++; i < 2 {
				t.Errorf("%s: %s", name, found)
			}
		}
	}
	forms := len(canaryForms("a value"))
	t.Logf("%d places with %d forms of %d secrets each; %d findings in %d outputs", len(p.places), forms, len(canaries), total, len(surfaces))
	if len(p.places) < 45 {
		t.Errorf("canaries were put into %d places only", len(p.places))
	}
}

// unkept are places of which nothing is kept: a server's headers, log messages and standard
// error, and a function that is left out because its description holds a secret.
var unkept = []string{"header of the model server", "description of a function of an MCP server", "standard error of an MCP server", "log message of an MCP server"}

// arrived reports the places of which nothing has reached what the run leaves: there a
// canary was lost and not hidden.
func (p *planted) arrived(t *testing.T, surfaces map[string][]byte) {
	t.Helper()
	all := bytes.Join(slices.Collect(maps.Values(surfaces)), nil)
	for _, place := range p.places {
		if bytes.Contains(all, []byte("["+place+"]")) == slices.Contains(unkept, place) {
			t.Errorf("%s: nothing of it is kept, or it is among those of which nothing is", place)
		}
	}
}

// withoutGiven leaves out what SECURITY.md says is kept as it is, in the state folder: what
// a person gives (the prompt, inputs, attached files, manifests), which is recorded before
// the secrets are known, and the content of changed files, which is to be applied.
func (p *planted) withoutGiven(name string, text []byte) []byte {
	switch {
	case strings.Contains(name, "/blobs/"):
		for _, place := range []string{"instructions of ", "attached file]", "command of a call]", "content of a file that is written]"} {
			if bytes.Contains(text, []byte("["+place)) {
				return nil
			}
		}
	case strings.Contains(name, "/events-"), strings.Contains(name, "agentctl events"):
		var kept [][]byte
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			if !bytes.Contains(line, []byte(`"type":"run.started"`)) {
				kept = append(kept, line)
			}
		}
		return bytes.Join(kept, []byte("\n"))
	case strings.Contains(name, "agentctl describe"):
		before, prompt, _ := bytes.Cut(text, []byte("\n  prompt:\n"))
		for bytes.HasPrefix(prompt, []byte("    ")) {
			_, prompt, _ = bytes.Cut(prompt, []byte("\n"))
		}
		return append(before, prompt...)
	}
	return text
}
