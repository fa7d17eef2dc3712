package main

import (
	"context"
	"encoding/json"
	"strings"
)

// inside is a script that shows what a contained program sees and may do. The prefix
// names the program that has the commands, such as busybox.
func inside(prefix string) string {
	commands := []string{
		// Lists cut an output behind some characters, which are to be the same each time.
		"echo " + strings.Repeat("what a program sees ", 20),
		"cat /proc/self/mountinfo", "echo -- env", "env | " + prefix + "sort", "echo -- id", "id", "echo -- limits", "", "echo -- roots",
		"ls -ld / /* /dev/* /tmp /run/* /proc/self/ns 2>&1 | " + prefix + "awk '{print $1, $3, $4, $9, $10, $11}'", "echo -- status",
		"grep -E '^(Cap|Seccomp|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status", "echo -- cgroup", "cat /proc/self/cgroup", "echo -- host", "hostname", "cat /proc/sys/kernel/domainname",
		"echo -- open", "ls /proc/self/fd", "echo -- first process", "cat /proc/1/comm", "echo -- network", "cat /proc/net/dev | " + prefix + "cut -d: -f1", "cat /proc/net/route | " + prefix + "wc -l",
		"echo -- writable", "for d in / /etc /usr /proc/sys/kernel /sys /dev /tmp /run /home; do touch $d/golden-try 2>/dev/null && echo $d; done",
		"echo -- maps", "cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups", "cat /proc/self/oom_score_adj",
	}
	for i, c := range commands {
		switch {
		case c == "":
			commands[i] = "ulimit -a"
		case !strings.HasPrefix(c, "echo") && !strings.HasPrefix(c, "for"):
			commands[i] = prefix + c
		case strings.HasPrefix(c, "for"):
			commands[i] = strings.Replace(c, "touch", prefix+"touch", 1)
		}
	}
	return strings.Join(commands, "; ")
}

// mounts lets a program in each kind of sandbox show what it sees.
func mounts(*harness) ([]scenario, error) {
	look := inside("")
	quoted, err := json.Marshal(look)
	if err != nil {
		return nil, err
	}
	shipped := "- calls: [{tool: bash, args: {command: " + string(quoted) + "}}]\n- say: done"
	own := one("do", "{}")
	agent := "tools: [{name: do}]\npolicyRefs: [{name: p}]"
	tool := func(more string) string { return allowAll + "\n---\n" + program("do", more, look) }
	shell := func(more string) string {
		return allowAll + "\n---\nkind: Tool\nmetadata: {name: bash}\nspec:\n" + indent(more) + "  source: {builtin: {name: bash}}"
	}
	files := map[string]string{"w/a.txt": "one\n", "m/more/x": "x", "w/.env": "K=v\n"}
	hidden := "kind: Policy\nmetadata: {name: p}\nspec: {default: allow, permissions: [{permission: read, pattern: '*.env', action: deny}]}"
	table := []end{
		{name: "bash", agent: allTools, steps: shipped, docs: allowAll},
		{name: "bash, in place", agent: allTools, steps: shipped, docs: allowAll, args: []string{"--in-place"}},
		{name: "bash, hidden file", agent: allTools, steps: shipped, docs: hidden},
		{name: "bash, limits", agent: allTools, steps: shipped, docs: shell("limits: {memory: 256Mi, pids: 60, cpu: 500m, scratch: 8Mi}")},
		{name: "bash, network", agent: allTools, steps: shipped, docs: shell("network: {mode: Host}")},
		{name: "bash, proxy", agent: allTools, steps: shipped, docs: shell("network: {mode: Proxy, allow: [ok.example]}")},
		{name: "bash, fresh", agent: allTools, steps: shipped, docs: shell("isolation: {fresh: true}")},
		{name: "bash, mounts", agent: allTools, steps: shipped, docs: shell("isolation: {mounts: [{path: more}, {path: /var/lib, access: ReadOnly}]}")},
		{name: "bash, mounts that are written", agent: allTools, steps: shipped, docs: shell("isolation: {mounts: [{path: more, access: ReadWrite}]}")},
		{name: "bash, environment", agent: allTools, steps: shipped, docs: shell("env: [{name: A, value: b}, {name: T, valueFrom: {env: GOLDEN_TOKEN}}]"), env: []string{"GOLDEN_TOKEN=canary-0123456789"}},
		{name: "bash, minimum none", agent: allTools, steps: shipped, docs: shell("isolation: {minimum: None}")},
		{name: "bash, container outside", agent: allTools, steps: shipped, docs: allowAll, env: []string{"AGENTCTL_OUTER_ISOLATION=container"}},
		{name: "bash, no sandbox", agent: allTools, steps: shipped, docs: allowAll, before: withoutSandbox, args: []string{"--allow-unsandboxed"}},
		{name: "exec", agent: agent, steps: own, docs: tool("")},
		{name: "exec, writes", agent: agent, steps: own, docs: tool("workspaceAccess: ReadWrite")},
		{name: "exec, host", agent: agent, steps: own, docs: tool("network: {mode: Host}")},
		{name: "exec, proxy", agent: agent, steps: own, docs: tool("network: {mode: Proxy, allow: [ok.example]}")},
		{name: "exec, in place", agent: agent, steps: own, docs: tool("workspaceAccess: ReadWrite"), args: []string{"--in-place"}},
		{name: "exec, limits", agent: agent, steps: own, docs: tool("limits: {memory: 256Mi, pids: 60, scratch: 8Mi}")},
	}
	var all []scenario
	for _, e := range table {
		e.files = files
		c := scenario{name: e.name, play: func(ctx context.Context, s *stage) error {
			if err := e.run(ctx, s, false); err != nil {
				return err
			}
			return s.sights(ctx)
		}}
		if !canSandbox() {
			c.skip = "this host gives no user namespaces"
		}
		all = append(all, c)
	}
	return all, nil
}

// sights notes what the tools of the newest run have printed.
func (s *stage) sights(ctx context.Context) error {
	o, err := s.quiet(ctx, "events", "@latest", "-o", "jsonl")
	if err != nil {
		return err
	}
	events, _ := parseEvents(o.stdout)
	for _, e := range events {
		var d struct{ Output, Code string }
		if (e.Type == "tool.result" || e.Type == "tool.error") && json.Unmarshal(e.Data, &d) == nil {
			s.note("%s %s", e.Type, d.Code)
			s.seen.WriteString(d.Output)
		}
	}
	s.note("%d events", min(len(events), 1))
	return nil
}
