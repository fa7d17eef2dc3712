package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// wires asks a model over each wire format: every way to fail, and what an answer can
// hold.
func wires(*harness) ([]scenario, error) {
	var all []scenario
	for _, w := range modeltest.Wires() {
		for _, name := range modeltest.FaultNames(w) {
			all = append(all, scenario{name: w.Name() + "/fault " + name, play: talk{wire: w, respond: func(modeltest.Request) modeltest.Step { return modeltest.FaultNamed(w, name) }}.play})
		}
		for _, name := range []string{"429", "503", "empty stream", "stream without finish", "200 with busy error", "503 in the stream"} {
			all = append(all, scenario{name: w.Name() + "/passing " + name, play: talk{wire: w, respond: func(r modeltest.Request) modeltest.Step {
				if r.N < 3 {
					return modeltest.FaultNamed(w, name)
				}
				return modeltest.Answer{Text: "fine again"}.Step()
			}}.play})
		}
		dialogues := dialogues(w)
		for _, name := range slices.Sorted(maps.Keys(dialogues)) {
			d := dialogues[name]
			d.wire = w
			all = append(all, scenario{name: w.Name() + "/" + name, play: d.play})
		}
	}
	return all, nil
}

// talk is a run with a model server.
type talk struct {
	wire modeltest.Wire
	// steps of the server; respond answers instead of them.
	steps   []modeltest.Step
	respond func(modeltest.Request) modeltest.Step
	// agent, model and docs are fields of the specs and more documents.
	agent, model, docs string
	files              map[string]string
	args               []string
}

// retries keeps runs short: no wait is longer than this.
const retries = "retry: {attempts: 3, maxDelay: 20ms, stallTimeout: 20s}"

func (t talk) play(ctx context.Context, s *stage) error {
	server, err := modeltest.Options{Wire: t.wire, Respond: t.respond, Address: fmt.Sprintf("127.0.0.1:%d", s.slot.port)}.Serve(t.steps...)
	if err != nil {
		return err
	}
	defer server.Close()
	manifest := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: m}\n" + indent(t.agent) +
		t.modelDoc("m", "test-model", server.URL, t.model) + t.modelDoc("spare", "spare-model", server.URL, "") + documents(t.docs)
	if err := s.put("m/all.yaml", manifest); err != nil {
		return err
	}
	for name, text := range t.files {
		if err := s.put(name, text); err != nil {
			return err
		}
	}
	args := append([]string{"run", "-f", "m", "--agent", "a", "-p", "Say it.", "--workspace", "w", "-o", "json", "--record", "tape.jsonl"}, t.args...)
	if _, err := s.agentctl(ctx, args...); err != nil {
		return err
	}
	for _, r := range server.Requests() {
		s.request(r)
	}
	if err := s.journals(); err != nil {
		return err
	}
	_, err = s.agentctl(ctx, "replay", "tape.jsonl")
	return err
}

func (t talk) modelDoc(name, model, url, more string) string {
	provider := map[string]string{"chat": "openai", "responses": "openai\n  api: responses"}[t.wire.Name()]
	if provider == "" {
		provider = t.wire.Name()
	}
	if !strings.Contains(more, "retry:") {
		more += "\n" + retries
	}
	return fmt.Sprintf("---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: %s}\nspec:\n  provider: %s\n  model: %s\n  baseURL: %s\n  apiKey: {valueFrom: {env: GOLDEN_KEY}}\n%s",
		name, provider, model, url, indent(more))
}

// indent puts lines into a spec.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

// documents completes documents that begin with their kind.
func documents(text string) string {
	var b strings.Builder
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(doc) != "" {
			b.WriteString("---\napiVersion: agentctl.dev/v1alpha1\n" + strings.Trim(doc, "\n") + "\n")
		}
	}
	return b.String()
}

// request notes what the server was sent.
func (s *stage) request(r modeltest.Request) {
	s.note("request %s %s?%s", r.Method, r.Path, r.Query)
	for _, k := range slices.Sorted(maps.Keys(r.Header)) {
		// The length counts the digits of durations; the others tell of the library that
		// sends, which is no part of the conversation.
		if k != "Content-Length" && k != "User-Agent" && !strings.HasPrefix(k, "X-Stainless-") {
			s.note("  %s: %s", k, strings.Join(r.Header[k], ", "))
		}
	}
	var v any
	if json.Unmarshal(r.Body, &v) != nil {
		s.note("  %s", r.Body)
		return
	}
	text, err := json.MarshalIndent(v, "  ", " ")
	if err != nil {
		text = r.Body
	}
	s.note("  %s", text)
}

// dialogues are answers that are none of the faults.
func dialogues(w modeltest.Wire) map[string]talk {
	usage := &modeltest.Usage{Prompt: 1200, Completion: 300, Cached: 200, Reasoning: 40}
	call := func(id, tool, args string) modeltest.Call { return modeltest.Call{ID: id, Tool: tool, Args: args} }
	say := func(answers ...modeltest.Answer) []modeltest.Step {
		var all []modeltest.Step
		for _, a := range answers {
			all = append(all, a.Step())
		}
		return all
	}
	files := map[string]string{"w/a.txt": "one\ntwo\n", "w/b.txt": "three\n"}
	allow := "kind: Policy\nmetadata: {name: p}\nspec: {default: allow}"
	tools := "tools: [{name: read}, {name: write}, {name: bash}, {name: grep}]\npolicyRefs: [{name: p}]"
	fallback := func(r modeltest.Request) modeltest.Step {
		if strings.Contains(string(r.Body)+r.Path, "test-model") {
			return modeltest.FaultNamed(w, "503")
		}
		return modeltest.Answer{Text: "the spare one"}.Step()
	}
	long := strings.Repeat("This is a long answer with words in it. ", 200)
	object := "output:\n  retries: 1\n  schema: {type: object, properties: {ok: {type: boolean}}, required: [ok], additionalProperties: false}"
	lines := strings.Repeat("a line of the file that is read\n", 900)
	return map[string]talk{
		"plain":             {steps: say(modeltest.Answer{Text: "hello"})},
		"plain jsonl":       {steps: say(modeltest.Answer{Text: "hello"}), args: []string{"-o", "jsonl"}},
		"plain text":        {steps: say(modeltest.Answer{Text: "hello"}), args: []string{"-o", "text"}},
		"usage and price":   {steps: say(modeltest.Answer{Text: "hello", Usage: usage}), model: "pricing: {input: \"2\", cacheRead: \"0.5\", output: \"8\"}"},
		"max cost":          {steps: say(modeltest.Answer{Text: "hello", Usage: usage}), model: "pricing: {input: \"2\", output: \"8\"}", agent: "limits: {maxCost: \"0.0001\"}"},
		"no price":          {steps: say(modeltest.Answer{Text: "hello", Usage: usage}), agent: "limits: {maxCost: \"1\"}"},
		"max tokens":        {steps: say(modeltest.Answer{Usage: usage, Calls: []modeltest.Call{call("c1", "read", `{"path":"a.txt"}`)}}, modeltest.Answer{Text: "end"}), agent: tools + "\nlimits: {maxTokens: 1000}", docs: allow, files: files},
		"long text":         {steps: say(modeltest.Answer{Text: long, Usage: usage})},
		"one byte a piece":  {steps: say(modeltest.Answer{Text: "hello, you", TextSize: 1})},
		"split everywhere":  {steps: []modeltest.Step{modeltest.Answer{Text: "hello, you", Usage: usage}.Step().Pieces(3)}},
		"no done":           {steps: say(modeltest.Answer{Text: "hello", NoDone: true})},
		"reasoning":         {steps: say(modeltest.Answer{Reasoning: "I think so.", Text: "yes", Usage: usage})},
		"hidden reasoning":  {steps: say(modeltest.Answer{Hidden: true, Text: "yes", Usage: usage})},
		"reasoning back":    {steps: say(modeltest.Answer{Reasoning: "I think so.", Calls: []modeltest.Call{call("c1", "read", `{"path":"a.txt"}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"a call":            {steps: say(modeltest.Answer{Text: "I look", Calls: []modeltest.Call{call("c1", "read", `{"path":"a.txt"}`)}, Usage: usage}, modeltest.Answer{Text: "end", Usage: usage}), agent: tools, docs: allow, files: files},
		"calls in parallel": {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "read", `{"path":"a.txt"}`), call("c2", "read", `{"path":"b.txt"}`), call("c3", "grep", `{"pattern":"t"}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"a command":         {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "bash", `{"command":"echo hi; exit 3"}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"pieces of a call":  {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "write", `{"path":"n.txt","content":"äöü\n"}`)}, ArgsSize: 2}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"unknown tool":      {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "raed", `{}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"wrong arguments":   {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "read", `{"file":1}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: allow, files: files},
		"denied":            {steps: say(modeltest.Answer{Calls: []modeltest.Call{call("c1", "bash", `{"command":"make"}`)}}, modeltest.Answer{Text: "end"}), agent: tools, docs: "kind: Policy\nmetadata: {name: p}\nspec: {default: deny}", files: files},
		"structured":        {steps: say(modeltest.Answer{Text: `{"ok":true}`}), agent: object, model: "parameters: {structuredOutput: true}"},
		"structured, words": {steps: say(modeltest.Answer{Text: `{"ok":1}`}, modeltest.Answer{Text: `{"ok":true}`}), agent: object, model: "parameters: {structuredOutput: false}"},
		"structured, wrong": {steps: say(modeltest.Answer{Text: `no`}, modeltest.Answer{Text: `no`}), agent: object},
		"fallback":          {respond: fallback, model: "fallbacks: [{name: spare}]"},
		"image":             {steps: say(modeltest.Answer{Text: "a picture"}), files: map[string]string{"i.png": "\x89PNG\r\n\x1a\n0000"}, args: []string{"--attach", "i.png"}},
		"pdf":               {steps: say(modeltest.Answer{Text: "a page"}), files: map[string]string{"i.pdf": "%PDF-1.4\n%%EOF\n"}, args: []string{"--attach", "i.pdf"}},
		"parameters":        {steps: say(modeltest.Answer{Text: "hello"}), model: "parameters: {maxOutputTokens: 100, temperature: 0.5, topP: 0.9, extra: {more: 1}}"},
		"instructions":      {steps: say(modeltest.Answer{Text: "hello"}), agent: "instructions: Be brief.\ncontextFiles: [AGENTS.md]", files: map[string]string{"w/AGENTS.md": "Use tabs.\n"}},
		"overflow, summary": {respond: shortened(w), agent: tools + "\ncontext: {keepRecentTokens: 1000}", docs: allow, files: map[string]string{"w/a.txt": lines, "w/b.txt": lines}},
		"small window":      {respond: shortened(w), agent: tools + "\ncontext: {keepRecentTokens: 1000, pruneToolOutput: false}", model: "contextWindow: 12000", docs: allow, files: map[string]string{"w/a.txt": lines, "w/b.txt": lines}},
		"bad key":           {respond: func(modeltest.Request) modeltest.Step { return modeltest.FaultNamed(w, "401") }, model: "fallbacks: [{name: spare}]"},
		"two attempts":      {respond: func(modeltest.Request) modeltest.Step { return modeltest.FaultNamed(w, "500") }, model: "retry: {attempts: 2, maxDelay: 10ms}"},
		"stalled": {respond: func(modeltest.Request) modeltest.Step {
			return modeltest.Answer{Text: "hello"}.Step().StallWith(0, ": wait\n\n")
		}, model: "retry: {attempts: 2, maxDelay: 10ms, stallTimeout: 150ms}"},
		"cut":             {respond: func(modeltest.Request) modeltest.Step { return modeltest.Answer{Text: "hello"}.Step().CutAt(80) }, model: "retry: {attempts: 2, maxDelay: 10ms}"},
		"silent":          {respond: func(modeltest.Request) modeltest.Step { return modeltest.Answer{Text: "hello"}.Step().StallAt(0) }, model: "retry: {attempts: 2, maxDelay: 10ms, stallTimeout: 150ms}"},
		"html":            {respond: func(modeltest.Request) modeltest.Step { return modeltest.Page() }, model: "fallbacks: [{name: spare}]"},
		"far away, spare": {respond: spared(w, modeltest.Refuse(http.StatusTooManyRequests, http.Header{"Retry-After": {"3600"}}, "")), model: "fallbacks: [{name: spare}]"},
	}
}

// spared answers from the model spare only.
func spared(_ modeltest.Wire, fault modeltest.Step) func(modeltest.Request) modeltest.Step {
	return func(r modeltest.Request) modeltest.Step {
		if strings.Contains(string(r.Body)+r.Path, "test-model") {
			return fault
		}
		return modeltest.Answer{Text: "the spare one"}.Step()
	}
}

// shortened reads files until the conversation is too long, once, and writes a
// summary where it is asked for one.
func shortened(w modeltest.Wire) func(modeltest.Request) modeltest.Step {
	return func(r modeltest.Request) modeltest.Step {
		switch {
		case r.N <= 3:
			return modeltest.Answer{Text: "on", Calls: []modeltest.Call{{ID: fmt.Sprintf("c%d", r.N), Tool: "read", Args: fmt.Sprintf(`{"path":"%c.txt","limit":%d}`, "ab"[r.N%2], 700+r.N)}}}.Step()
		case r.N == 4:
			return modeltest.FaultNamed(w, "413")
		}
		return modeltest.Answer{Text: "the files hold lines"}.Step()
	}
}
