package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// end is a run with a scripted model, and what comes behind it.
type end struct {
	name string
	// agent, steps and docs are the spec of the agent, the answers of its model and
	// more documents, without what all have in common.
	agent, steps, docs string
	files              map[string]string
	// args of agentctl run; none of the others is given if args begin with a verb.
	args []string
	env  []string
	// before prepares what the table cannot say, and may skip by an error.
	before func(context.Context, *stage) (func(), error)
	// then are more commands.
	then [][]string
	// signal is sent when a call is running.
	signal syscall.Signal
	skip   string
}

// ends plays every way in which a run can end, and what can happen on its way.
func ends(h *harness) ([]scenario, error) {
	var all []scenario
	for _, e := range endings(h) {
		all = append(all, scenario{name: e.name, skip: e.skip, play: func(ctx context.Context, s *stage) error {
			if err := e.run(ctx, s, true); err != nil {
				return err
			}
			for _, args := range e.then {
				if _, err := s.agentctl(ctx, args...); err != nil {
					return err
				}
			}
			return s.journals()
		}})
	}
	return all, nil
}

// manifest writes the documents of a run.
func (e end) manifest() string {
	return "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a, labels: {team: ci}}\nspec:\n  modelRef: {name: m}\n" + indent(e.agent) +
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" +
		indent(indent(strings.TrimPrefix(e.steps, "\n"))) + documents(e.docs)
}

// run plays the run; told notes what it prints.
func (e end) run(ctx context.Context, s *stage, told bool) error {
	env := s.env
	defer func() { s.env = env }()
	s.env = append(append([]string{}, env...), e.env...)
	if e.steps == "" {
		e.steps = "[]"
	}
	if e.steps == "[]" {
		m := strings.Replace(e.manifest(), "    steps:\n", "    steps: []\n", 1)
		if err := s.put("m/all.yaml", strings.Replace(m, "    []\n", "", 1)); err != nil {
			return err
		}
	} else if err := s.put("m/all.yaml", e.manifest()); err != nil {
		return err
	}
	for name, text := range e.files {
		if err := s.put(name, text); err != nil {
			return err
		}
	}
	if e.before != nil {
		after, err := e.before(ctx, s)
		if err != nil {
			return err
		}
		if after != nil {
			defer after()
		}
	}
	args := append([]string{"run", "-f", "m", "--agent", "a", "-p", "Go on.", "--workspace", "w"}, e.args...)
	if len(e.args) == 0 || e.args[0] != "-o" && !strings.Contains(strings.Join(e.args, " "), " -o ") {
		args = append(args, "-o", "json")
	}
	var o outcome
	var err error
	if e.signal != 0 {
		o, err = s.interrupted(ctx, e.signal, args)
	} else {
		o, err = s.quiet(ctx, args...)
	}
	if err == nil && told {
		s.tell(args, o)
	}
	return err
}

// interrupted sends a signal as soon as the file "begun" is in the folder of the case.
func (s *stage) interrupted(ctx context.Context, signal syscall.Signal, args []string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := s.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	wait := make(chan error, 1)
	go func() { wait <- cmd.Wait() }()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case err := <-wait:
			return ended(ctx, cmd, err, &stdout, &stderr)
		case <-every.C:
			if _, err := os.Stat(s.at("w", "begun")); err == nil {
				every.Stop()
				_ = cmd.Process.Signal(signal) // it may have ended
				return ended(ctx, cmd, <-wait, &stdout, &stderr)
			}
		}
	}
}

const (
	allowAll  = "kind: Policy\nmetadata: {name: p}\nspec: {default: allow}"
	denyAll   = "kind: Policy\nmetadata: {name: p}\nspec: {default: deny}"
	askAll    = "kind: Policy\nmetadata: {name: p}\nspec: {rules: [{name: ask, action: ask}]}"
	allTools  = "tools: [{name: read}, {name: list}, {name: glob}, {name: grep}, {name: edit}, {name: write}, {name: bash}]\npolicyRefs: [{name: p}]"
	lookTwice = "- calls: [{tool: list, args: {path: .}}]\n- calls: [{tool: list, args: {path: .}}]\n- calls: [{tool: list, args: {path: .}}]\n- calls: [{tool: list, args: {path: .}}]\n- say: done"
)

// program is a Tool that runs a script.
func program(name, more, script string) string {
	quoted, _ := json.Marshal(script) // a string
	return fmt.Sprintf("kind: Tool\nmetadata: {name: %s}\nspec:\n  description: Does it.\n  parameters: {type: object, properties: {num: {type: integer}, text: {type: string}}}\n%s  source: {exec: {command: [sh, -c, %s]}}", name, indent(more), quoted)
}

func one(tool, args string) string {
	return "- calls: [{tool: " + tool + ", args: " + args + "}]\n- say: \"it said ${last.output}\"\n"
}

func bash(command string) string {
	quoted, _ := json.Marshal(command) // a string
	return one("bash", `{command: `+string(quoted)+`}`)
}

// endings is the table of the part.
func endings(h *harness) []end {
	files := map[string]string{"w/a.txt": "one\n", "w/b.txt": "two\n", "w/sub/c.md": "three\n", "w/.env": "KEY=x\n"}
	change := "- calls: [{tool: read, args: {path: a.txt}}]\n- calls: [{tool: edit, args: {path: a.txt, oldString: one, newString: changed}}, {tool: write, args: {path: new/d.txt, content: \"new\\n\"}}]\n- calls: [{tool: bash, args: {command: \"rm b.txt; chmod +x a.txt; ln -s a.txt link\"}}]\n- say: done"
	guarded := func(guard string) string { return allTools + "\nloopGuard: " + guard }
	tool := func(name string) string { return "tools: [{name: " + name + "}]\npolicyRefs: [{name: p}]" }
	readers := [][]string{{"diff", "@latest"}, {"apply-changes", "@latest"}, {"diff", "@latest", "--stat"}}
	all := []end{
		// How a run ends.
		{name: "completed", steps: "- say: done"},
		{name: "completed, text", steps: "- say: done", args: []string{"-o", "text"}},
		{name: "completed, jsonl", steps: "- {reasoning: hm, say: done}", args: []string{"-o", "jsonl"}},
		{name: "no answer", steps: "[]"},
		{name: "an empty answer", steps: "- say: ''"},
		{name: "max steps", agent: allTools + "\nlimits: {maxSteps: 2}\nloopGuard: {identicalCalls: 0, cycles: 0}", steps: lookTwice, docs: allowAll, files: files},
		{name: "deadline", agent: tool("slow"), steps: one("slow", "{}"), docs: allowAll + "\n---\n" + program("slow", "", "sleep 30"), args: []string{"--timeout", "700ms"}},
		{name: "timeout of a tool", agent: tool("slow"), steps: one("slow", "{}"), docs: allowAll + "\n---\n" + program("slow", "limits: {timeout: 300ms}", "echo begun; sleep 30")},
		{name: "deny all", agent: allTools, steps: bash("echo hi"), docs: denyAll},
		{name: "fail on denied", agent: allTools, steps: "- calls: [{tool: read, args: {path: a.txt}}]\n- calls: [{tool: bash, args: {command: make}}]\n- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {permissions: [{permission: bash, pattern: '*', action: deny}]}", files: files, args: []string{"--fail-on-denied"}},
		{name: "a denial beside calls", agent: allTools, steps: "- calls: [{tool: read, args: {path: a.txt}}, {tool: bash, args: {command: make}}]\n- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {permissions: [{permission: bash, pattern: '*', action: deny}]}", files: files},
		{name: "output invalid", agent: "output: {retries: 1, schema: {type: object, required: [ok]}}", steps: "- say: no\n- say: '{}'"},
		{name: "output mended", agent: "output: {retries: 1, schema: {type: object, required: [ok]}}", steps: "- say: no\n- say: '{\"ok\": 1}'"},
		{name: "key missing", docs: "kind: Model\nmetadata: {name: x}\nspec: {provider: openai, model: x, baseURL: 'http://127.0.0.1:1/v1', apiKey: {valueFrom: {env: NO_SUCH_KEY}}}", args: []string{"--model", "x"}},
		{name: "key in an open file", docs: "kind: Model\nmetadata: {name: x}\nspec: {provider: openai, model: x, baseURL: 'http://127.0.0.1:1/v1', apiKey: {valueFrom: {file: /etc/hostname}}}", args: []string{"--model", "x"}},
		{name: "key by a command that fails", docs: "kind: Model\nmetadata: {name: x}\nspec: {provider: openai, model: x, baseURL: 'http://127.0.0.1:1/v1', apiKey: {valueFrom: {exec: ['false']}}}", args: []string{"--model", "x"}},
		{name: "provider away", docs: "kind: Model\nmetadata: {name: x}\nspec: {provider: openai, model: x, baseURL: 'http://127.0.0.1:1/v1', retry: {attempts: 2, maxDelay: 10ms}}", args: []string{"--model", "x"}},
		{name: "no sandbox", agent: allTools, steps: bash("echo hi"), docs: allowAll, before: withoutSandbox},
		{name: "no sandbox, allowed", agent: allTools, steps: bash("echo hi"), docs: allowAll, before: withoutSandbox, args: []string{"--allow-unsandboxed"}},
		{name: "no sandbox, container outside", agent: allTools, steps: bash("echo hi"), docs: allowAll, before: withoutSandbox, env: []string{"AGENTCTL_OUTER_ISOLATION=container"}},
		{name: "workspace too large", agent: allTools, steps: bash("echo hi"), docs: allowAll + "\n---\nkind: Run\nmetadata: {name: r}\nspec:\n  agentRef: {name: a}\n  workspace: {source: {path: ../w}, sizeLimit: 1Ki}", files: map[string]string{"w/large": strings.Repeat("x", 9000)}},
		{name: "workspace missing", agent: allTools, steps: bash("echo hi"), docs: allowAll, args: []string{"--workspace", "nowhere"}},
		{name: "tape at its end", docs: "kind: Model\nmetadata: {name: x}\nspec: {provider: cassette, cassette: {path: ../tape.jsonl}}", steps: "- say: first", args: []string{"--record", "tape.jsonl", "-o", "json"}, then: [][]string{{"run", "-f", "m", "--agent", "a", "--model", "x", "-p", "Go on."}}, before: emptyTape},
		{name: "interrupt", agent: tool("slow"), steps: one("slow", "{}"), docs: allowAll + "\n---\n" + program("slow", "workspaceAccess: ReadWrite", "echo half; touch begun; sleep 30"), args: []string{"--in-place", "-o", "json"}, signal: syscall.SIGINT},
		{name: "terminate", agent: tool("slow"), steps: one("slow", "{}"), docs: allowAll + "\n---\n" + program("slow", "workspaceAccess: ReadWrite", "echo half; touch begun; sleep 30"), args: []string{"--in-place", "-o", "json"}, signal: syscall.SIGTERM},
		{name: "hang up", agent: tool("slow"), steps: one("slow", "{}"), docs: allowAll + "\n---\n" + program("slow", "workspaceAccess: ReadWrite", "echo half; touch begun; sleep 30"), args: []string{"--in-place", "-o", "json"}, signal: syscall.SIGHUP},

		// The loop guard.
		{name: "loop, stop", agent: guarded("{onDetect: Stop}"), steps: lookTwice, docs: allowAll},
		{name: "loop, nudge", agent: guarded("{onDetect: Nudge}"), steps: lookTwice, docs: allowAll},
		{name: "loop, ask never", agent: guarded("{onDetect: Ask, identicalCalls: 2}"), steps: lookTwice, docs: allowAll, args: []string{"--approve", "never"}},
		{name: "loop, ask all", agent: guarded("{onDetect: Ask, identicalCalls: 2}"), steps: lookTwice, docs: allowAll, args: []string{"--approve", "all"}},
		{name: "loop, cycle", agent: guarded("{cycles: 2}"), steps: strings.Repeat("- calls: [{tool: list, args: {path: .}}]\n- calls: [{tool: read, args: {path: a.txt}}]\n", 4) + "- say: done", docs: allowAll, files: files},
		{name: "loop, stalled", agent: guarded("{stalledSteps: 2, identicalCalls: 0}"), steps: strings.Repeat("- calls: [{tool: list, args: {path: .}}]\n", 8) + "- say: done", docs: allowAll, files: files},
		{name: "loop, invalid answers", agent: guarded("{invalidAnswers: 2}"), steps: strings.Repeat("- calls: [{tool: raed, args: {}}]\n- calls: [{tool: read, args: {}}]\n", 3) + "- say: done", docs: allowAll},
		{name: "loop, text", agent: "loopGuard: {repeatedTextBytes: 1000}", steps: "- say: \"" + strings.Repeat("again and again ", 400) + "\""},

		// Questions.
		{name: "ask, never", agent: allTools, steps: bash("echo hi"), docs: askAll, args: []string{"--approve", "never"}},
		{name: "ask, all", agent: allTools, steps: bash("echo hi"), docs: askAll, args: []string{"--approve", "all"}},
		{name: "ask, all but R3", agent: tool("gone"), steps: one("gone", "{}"), docs: askAll + "\n---\n" + program("gone", "risk: R3", "echo gone"), args: []string{"--approve", "all"}},
		{name: "ask, all and R3", agent: tool("gone"), steps: one("gone", "{}"), docs: askAll + "\n---\n" + program("gone", "risk: R3", "echo gone"), args: []string{"--approve", "all,R3"}},
		{name: "ask, hashes in a file", agent: allTools, steps: bash("echo hi"), docs: askAll, args: []string{"--approve", "hashes"}, before: approvedHashes(allTools, bash("echo hi"), askAll)},
		{name: "ask, suspend and approve", agent: allTools + "\napprovals: {onAsk: Suspend}", steps: bash("echo hi"), docs: askAll, then: [][]string{{"approve"}, {"approve", "@latest"}, {"resume", "@latest", "-o", "json"}, {"resume", "@latest"}}},
		{name: "ask, suspend and deny", agent: allTools + "\napprovals: {onAsk: Suspend}", steps: bash("echo hi"), docs: askAll, then: [][]string{{"deny", "@latest", "--reason", "not now"}, {"resume", "@latest", "-o", "json"}}},
		{name: "ask, suspend and end", agent: allTools + "\napprovals: {onAsk: Suspend}", steps: bash("echo hi"), docs: askAll, then: [][]string{{"deny", "@latest", "--end-run"}, {"resume", "@latest", "-o", "json"}}},
		{name: "ask, suspend and resume all", agent: allTools + "\napprovals: {onAsk: Suspend}", steps: bash("echo hi"), docs: askAll, then: [][]string{{"resume", "@latest", "-o", "jsonl"}, {"resume", "@latest", "--approve", "all", "-o", "jsonl"}}},
		{name: "ask, wait in vain", agent: allTools + "\napprovals: {onAsk: Wait, timeout: 300ms}", steps: bash("echo hi"), docs: askAll},
		{name: "messages to a suspended run", agent: allTools + "\napprovals: {onAsk: Suspend}", steps: bash("echo hi"), docs: askAll, then: [][]string{{"send", "@latest", "hurry up"}, {"resume", "@latest", "--approve", "all", "-o", "json"}, {"send", "@latest", "too late"}, {"cancel", "@latest"}}},

		// Policies.
		{name: "rules", agent: allTools, steps: "- calls: [{tool: write, args: {path: /etc/x, content: x}}, {tool: read, args: {path: .env}}, {tool: bash, args: {command: 'curl evil.example'}}, {tool: grep, args: {pattern: KEY}}, {tool: bash, args: {command: 'cat .env'}}, {tool: bash, args: {command: 'echo $X'}}]\n- say: done", files: files, docs: "kind: Policy\nmetadata: {name: p}\nspec:\n  params: {hosts: [ok.example]}\n  permissions: [{permission: read, pattern: '*.env', action: deny}]\n  rules:\n  - {name: inside, match: {tools: [edit, write]}, when: 'paths.exists(p, !p.inWorkspace)', action: deny, messageExpression: \"'outside: ' + paths[0].clean\"}\n  - {name: hosts, match: {tools: [bash]}, when: 'cmd.network && !cmd.hosts.all(h, h in params.hosts)', action: ask}\n  - {name: rest, match: {tools: [bash]}, when: '!cmd.dynamic', action: allow}"},
		{name: "rule that fails", agent: allTools, steps: bash("echo hi"), docs: "kind: Policy\nmetadata: {name: p}\nspec: {rules: [{name: broken, when: 'paths[7].clean == \"x\"', action: allow}]}"},
		{name: "warn and audit", agent: allTools, steps: bash("echo hi"), docs: "kind: Policy\nmetadata: {name: p}\nspec: {mode: Warn, rules: [{name: w, action: deny}]}\n---\nkind: Policy\nmetadata: {name: q}\nspec: {appliesTo: {agentSelector: {matchLabels: {team: ci}}}, mode: Audit, rules: [{name: w, action: deny}]}"},
		{name: "redact a call", agent: allTools, steps: "- calls: [{tool: write, args: {path: x, content: token}}]\n- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {rules: [{name: hide, match: {tools: [write]}, action: redact, redact: {fields: [content]}}]}", then: readers},
		{name: "redact a result", agent: allTools, steps: "- calls: [{tool: read, args: {path: k.txt}}]\n- say: \"${last.output}\"", files: map[string]string{"w/k.txt": "token ghp_abcdefghijklmnopqrstuvwxyz0123456789\n"}, docs: "kind: Policy\nmetadata: {name: p}\nspec: {default: allow, rules: [{name: hide, 'on': Result, action: redact, redact: {secrets: true}}]}"},
		{name: "by risk", agent: allTools, steps: "- calls: [{tool: read, args: {path: a.txt}}, {tool: write, args: {path: n, content: x}}, {tool: write, args: {path: /tmp/n, content: x}}, {tool: bash, args: {command: 'echo hi'}}]\n- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {default: byRisk}", files: files},
		{name: "by risk, in place", agent: allTools, steps: "- calls: [{tool: write, args: {path: n, content: x}}, {tool: bash, args: {command: 'echo hi'}}]\n- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {default: byRisk}", files: files, args: []string{"--in-place"}},
		{name: "counts", agent: allTools, steps: strings.Repeat("- calls: [{tool: bash, args: {command: 'echo ${turn}'}}]\n", 4) + "- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {default: allow, rules: [{name: often, when: 'session.calls.bash > 2 || budget.steps.used > 9', action: deny}]}"},
		{name: "secrets in the output", agent: tool("tell"), steps: one("tell", "{}"), docs: allowAll + "\n---\n" + program("tell", "env: [{name: TOKEN, valueFrom: {env: GOLDEN_TOKEN}}, {name: PLAIN, value: v}]", "echo $TOKEN $PLAIN; echo $TOKEN | base64; env | sort"), env: []string{"GOLDEN_TOKEN=canary-0123456789"}},

		// Calls.
		{name: "every shipped tool", agent: allTools, files: files, docs: allowAll, then: readers, steps: "- calls: [{tool: list, args: {path: .}}, {tool: glob, args: {pattern: '**/*.md'}}, {tool: grep, args: {pattern: 't'}}]\n" + change},
		{name: "in parallel", agent: allTools, files: files, docs: allowAll, steps: "- calls: [{tool: read, args: {path: a.txt}}, {tool: read, args: {path: b.txt}}, {tool: read, args: {path: none}}, {tool: bash, args: {command: 'sleep 0.1; echo 1'}}, {tool: bash, args: {command: 'echo 2'}}, {tool: list, args: {path: sub}}]\n- say: done"},
		{name: "mistakes of the model", agent: allTools, files: files, docs: allowAll, steps: "- calls: [{tool: Read, args: {path: a.txt}}, {tool: raed, args: {path: a.txt}}, {tool: read, args: {file: a.txt}}, {tool: read, args: {path: a.txt, limit: '5'}}]\n- calls: [{tool: edit, args: {path: a.txt, oldString: one, newString: two}}, {tool: edit, args: {path: b.txt, oldString: none, newString: two}}]\n- say: done"},
		{name: "a command that fails", agent: allTools, docs: allowAll, steps: bash("echo out; echo err >&2; exit 7")},
		{name: "a command that is killed", agent: allTools, docs: allowAll, steps: bash("kill -9 $$")},
		{name: "much output", agent: allTools, docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: bash}\nspec: {limits: {outputLines: 20}, source: {builtin: {name: bash}}}", steps: "- calls: [{tool: bash, args: {command: 'seq 1 5000'}}]\n- calls: [{tool: bash, args: {command: 'seq 1 10'}}]\n- say: done"},
		{name: "long lines", agent: allTools, docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: bash}\nspec: {limits: {outputBytes: 1000}, source: {builtin: {name: bash}}}", steps: bash("head -c 5000 /dev/zero | tr '\\\\0' x")},
		{name: "no text", agent: allTools, docs: allowAll, steps: bash("head -c 50 /dev/zero; printf '\\\\377\\\\376'")},
		{name: "exec", agent: tool("do"), steps: one("do", "{num: 1, text: ä}"), docs: allowAll + "\n---\n" + program("do", "", "cat; pwd | sed 's,.*/,,'; echo $AGENTCTL_CALL; ls")},
		{name: "exec, fails", agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\n" + program("do", "", "echo out; echo err >&2; exit 9")},
		{name: "exec, writes", agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\n" + program("do", "workspaceAccess: ReadWrite", "echo x > made; cat made"), then: readers},
		{name: "exec, may not write", agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\n" + program("do", "", "echo x > made")},
		{name: "exec, no program", agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: do}\nspec: {description: x, parameters: {type: object}, source: {exec: {command: [no-such-program]}}}"},
		{name: "exec, beside the manifest", agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: do}\nspec: {description: x, parameters: {type: object}, isolation: {mounts: [{path: .}]}, source: {exec: {command: [./do.sh]}}}", files: map[string]string{"m/do.sh": "#!/bin/sh\necho beside; ls $(dirname $0)\n"}},
		{name: "exec, call name", agent: "tools: [{name: do}]\npolicyRefs: [{name: p}]", steps: one("act", "{}"), docs: allowAll + "\n---\n" + program("do", "callName: act", "echo acted")},
		{name: "plugin", agent: tool("look"), steps: one("look", "{path: a.txt}"), files: files, docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: look}\nspec: {risk: R0, source: {plugin: {command: ['" + "BIN/agentctl-tools" + "'], tool: read}}}", before: binFolder},
		{name: "plugin that is none", agent: tool("look"), steps: one("look", "{path: a.txt}"), docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: look}\nspec: {risk: R0, source: {plugin: {command: [/bin/echo, hello]}}}"},
		{name: "plugin with another digest", agent: tool("look"), steps: one("look", "{path: a.txt}"), docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: look}\nspec: {risk: R0, source: {plugin: {sha256: '" + strings.Repeat("0", 64) + "', command: ['BIN/agentctl-tools'], tool: read}}}", before: binFolder},
		{name: "example in shell", agent: tool("wordcount"), steps: one("wordcount", "{text: 'one two'}"), docs: allowAll, before: example(h, "shell")},
		{name: "limits of a tool", agent: allTools, docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: bash}\nspec: {limits: {memory: 64Mi, pids: 40, scratch: 1Mi}, source: {builtin: {name: bash}}}", steps: bash("head -c 3000000 /dev/zero > $TMPDIR/x; echo $?")},
		{name: "network none", agent: allTools, docs: allowAll, steps: bash("cat /proc/net/dev | tail -n +3 | cut -d: -f1; env | grep -i proxy; echo end")},
		{name: "network host", agent: tool("net"), docs: allowAll + "\n---\n" + program("net", "network: {mode: Host}\nenv: [{name: LISTED, value: LISTEDURL}]", "curl -sS --max-time 5 $LISTED 2>&1; echo end"), steps: one("net", "{}"), before: reachable, skip: missing("curl")},
		{name: "network proxy", agent: tool("net"), docs: allowAll + "\n---\n" + program("net", "network: {mode: Proxy, allow: ['LISTEDHOST']}\nenv: [{name: LISTED, value: LISTEDURL}]", "curl -sS --max-time 5 $LISTED 2>&1; curl -sS --max-time 5 http://127.0.0.1:1/ 2>&1; curl -sS --max-time 5 http://other.example/ 2>&1; env | grep -i proxy | cut -d= -f1 | sort"), steps: one("net", "{}"), before: reachable, skip: missing("curl")},

		// Workspaces.
		{name: "a change, applied", agent: allTools, steps: change, files: files, docs: allowAll, then: append(readers, []string{"apply-changes", "@latest"}, []string{"diff", "@latest", "-o", "json"})},
		{name: "a change, in place", agent: allTools, steps: change, files: files, docs: allowAll, args: []string{"--in-place"}, then: readers},
		{name: "empty workspace", agent: allTools, steps: bash("ls -A; echo x > y"), docs: allowAll + "\n---\nkind: Run\nmetadata: {name: r}\nspec:\n  agentRef: {name: a}\n  workspace: {strategy: Empty}", args: []string{"--workspace", ""}, then: readers},
		{name: "excluded files", agent: allTools, steps: bash("ls -A"), files: files, docs: allowAll + "\n---\nkind: Run\nmetadata: {name: r}\nspec:\n  agentRef: {name: a}\n  workspace: {source: {path: ../w}, exclude: [sub, .env]}"},
		{name: "links and modes", agent: allTools, steps: bash("ls -l | cut -c1-10; readlink out; cat out/hostname 2>&1 | head -c 0; echo end"), docs: allowAll, before: links},
		{name: "context files", agent: "contextFiles: [AGENTS.md, none.md, /etc/hostname]\ninstructions: Be brief.", steps: "- say: done", files: map[string]string{"w/AGENTS.md": "Use tabs.\n"}},

		// What a run is given.
		{name: "inputs", agent: "instructions: Count to ${inputs.n}.\ninputs: {schema: {type: object, properties: {n: {type: integer}, on: {type: boolean}}, required: [n]}}", steps: "- say: \"${inputs.n} ${inputs.on} ${prompt}\"", args: []string{"--input", "n=5", "--input", "on=true"}},
		{name: "inputs missing", agent: "inputs: {schema: {type: object, properties: {n: {type: integer}}, required: [n]}}", steps: "- say: done"},
		{name: "inputs wrong", agent: "inputs: {schema: {type: object, properties: {n: {type: integer}}, required: [n]}}", steps: "- say: done", args: []string{"--input", "n=five"}},
		{name: "prompt of a file", steps: "- say: \"${prompt}\"", files: map[string]string{"p.md": "from a file\n"}, args: []string{"-p", "@p.md"}},
		{name: "attached image", steps: "- say: done", files: map[string]string{"i.png": "\x89PNG\r\n\x1a\n0000"}, args: []string{"--attach", "i.png"}},
		{name: "attached text", steps: "- say: done", files: map[string]string{"i.txt": "text"}, args: []string{"--attach", "i.txt"}},
		{name: "a Run", steps: "- say: \"${prompt} ${inputs.who}\"", docs: "kind: Run\nmetadata: {name: r, labels: {a: b}}\nspec: {agentRef: {name: a}, prompt: of the Run, inputs: {who: you}}", args: []string{"-p", ""}},
		{name: "colours", agent: allTools, steps: change, files: files, docs: allowAll, args: []string{"-o", "text", "--color", "always"}},
		{name: "mistakes of the author", agent: "tols: []\nlimits: {maxSteps: -1}", steps: "- say: done", docs: "kind: Policy\nmetadata: {name: p}\nspec: {rules: [{name: x, when: 'pats.size() > 0', action: dney}]}", then: [][]string{{"validate", "-f", "m"}}},

		// Tapes.
		{name: "record and replay", agent: allTools, steps: change, files: files, docs: allowAll, args: []string{"--record", "tape.jsonl"}, then: [][]string{{"replay", "tape.jsonl"}, {"replay", "tape.jsonl", "-o", "json"}, {"replay", "tape.jsonl", "-o", "jsonl"}, {"replay", "tape.jsonl", "-f", "m"}}},
		{name: "record, replay another", agent: allTools, steps: change, files: map[string]string{"w/a.txt": "one\n", "w/b.txt": "x", "other/a.yaml": end{agent: allTools + "\nlimits: {maxSteps: 1}", steps: change, docs: allowAll}.manifest()}, docs: allowAll, args: []string{"--record", "tape.jsonl"}, then: [][]string{{"replay", "tape.jsonl", "-f", "other"}, {"replay", "tape.jsonl", "-f", "other", "-o", "json"}, {"replay", "tape.jsonl", "--update", "--approve", "never"}}},
	}
	for _, pack := range []string{"baseline", "ci", "no-secrets", "read-only"} {
		all = append(all, end{name: "pack " + pack, agent: strings.Replace(allTools, "name: p}", "name: "+pack+"}", 1), files: files, steps: "- calls: [{tool: read, args: {path: .env}}, {tool: read, args: {path: a.txt}}, {tool: write, args: {path: .git/hooks/x, content: x}}, {tool: write, args: {path: n.txt, content: x}}]\n- calls: [{tool: bash, args: {command: 'ls'}}, {tool: bash, args: {command: 'rm -rf /'}}, {tool: bash, args: {command: 'git push --force'}}]\n- say: done"})
	}
	for _, key := range []string{"Never", "Idempotent", "Keyed"} {
		all = append(all, end{name: "retry class " + key, agent: tool("do"), steps: one("do", "{}"), docs: allowAll + "\n---\n" + program("do", "retry: "+key, "echo $AGENTCTL_KEY | sed 's,.*/,,'")})
	}
	return append(all, boxed(h)...)
}

func missing(program string) string {
	if _, err := exec.LookPath(program); err != nil {
		return "this host has no " + program
	}
	return ""
}

func withoutSandbox(_ context.Context, s *stage) (func(), error) {
	if err := os.Mkdir(s.at("bare"), 0o755); err != nil {
		return nil, err
	}
	s.env = append(s.env, "AGENTCTL_LIBEXEC="+s.at("bare"))
	return nil, os.Symlink(s.slot.path("bin", "agentctl-tools"), s.at("bare", "agentctl-tools"))
}

// emptyTape is there so that the manifests are valid; it is written over.
func emptyTape(ctx context.Context, s *stage) (func(), error) {
	if err := s.put("n/all.yaml", end{steps: "- say: first"}.manifest()); err != nil {
		return nil, err
	}
	_, err := s.quiet(ctx, "run", "-f", "n", "-p", "x", "--workspace", "w", "--record", "tape.jsonl", "--state", s.at("other"))
	return nil, err
}

// approvedHashes writes the hashes of the calls that a first run asks about.
func approvedHashes(agent, steps, docs string) func(context.Context, *stage) (func(), error) {
	return func(ctx context.Context, s *stage) (func(), error) {
		if err := s.put("first/all.yaml", end{agent: agent, steps: steps, docs: docs}.manifest()); err != nil {
			return nil, err
		}
		o, err := s.quiet(ctx, "run", "-f", "first", "-p", "Go on.", "--workspace", "w", "--approve", "never", "-o", "jsonl", "--state", s.at("other"))
		if err != nil {
			return nil, err
		}
		var hashes strings.Builder
		events, _ := parseEvents(o.stdout)
		for _, e := range events {
			var d struct{ Hash string }
			if e.Type == "approval.requested" && json.Unmarshal(e.Data, &d) == nil {
				hashes.WriteString(d.Hash + "\n")
			}
		}
		return nil, s.put("hashes", hashes.String())
	}
}

// binFolder writes the folder of the programs into the manifests.
func binFolder(_ context.Context, s *stage) (func(), error) {
	return nil, s.replace("m/all.yaml", "BIN", s.slot.path("bin"))
}

func (s *stage) replace(file string, oldnew ...string) error {
	text, err := os.ReadFile(s.at(file))
	if err != nil {
		return err
	}
	return os.WriteFile(s.at(file), []byte(strings.NewReplacer(oldnew...).Replace(string(text))), 0o600)
}

// example adds the manifest of an example that needs no building.
func example(h *harness, language string) func(context.Context, *stage) (func(), error) {
	return beside(filepath.Join(h.tree, "plugins", "examples", language))
}

// beside copies the files of a folder beside the manifests.
func beside(folder string) func(context.Context, *stage) (func(), error) {
	return func(_ context.Context, s *stage) (func(), error) {
		files, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, d := range files {
			if d.IsDir() || strings.HasSuffix(d.Name(), ".md") {
				continue
			}
			if err := copyFile(filepath.Join(folder, d.Name()), s.at("m", d.Name()), 0o755); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// reachable starts a server that a tool may reach.
func reachable(_ context.Context, s *stage) (func(), error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.slot.port)) //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	_ = server.Listener.Close() // the one it made itself
	server.Listener = l
	server.Start()
	return server.Close, s.replace("m/all.yaml", "LISTEDURL", server.URL, "LISTEDHOST", strings.TrimPrefix(server.URL, "http://"))
}

func links(_ context.Context, s *stage) (func(), error) {
	if err := s.put("w/run.sh", "#!/bin/sh\n"); err != nil {
		return nil, err
	}
	return nil, os.Symlink("/etc", s.at("w", "out"))
}
