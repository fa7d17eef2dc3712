package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/sandbox/container/containerdtest"
)

// boxes is a containerd of this program's own, started when the first case needs it.
type boxes struct {
	mu     sync.Mutex
	daemon *containerdtest.Daemon
}

func newBoxes(string) *boxes { return &boxes{} }

// start returns the address of its socket.
func (b *boxes) start() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon == nil {
		d, err := containerdtest.Start()
		if err != nil {
			return "", fmt.Errorf("start a containerd: %w", err)
		}
		b.daemon = d
	}
	return b.daemon.Address, nil
}

func (b *boxes) stop() {
	if b.daemon != nil {
		_ = b.daemon.Stop() // its folders are temporary
	}
}

// boxed are runs with tools that are images.
func boxed(h *harness) []end {
	skip := containerdtest.Missing()
	if skip == "" {
		skip = missing("busybox")
	}
	image := func(program string) func(context.Context, *stage) (func(), error) {
		return func(ctx context.Context, s *stage) (func(), error) {
			address, err := h.boxes.start()
			if err != nil {
				return nil, err
			}
			s.env = append(s.env, "CONTAINERD_ADDRESS="+address)
			from := s.slot.path("bin", program)
			if program == "busybox" {
				if from, err = exec.LookPath(program); err != nil {
					return nil, err
				}
			}
			o, err := s.agentctl(ctx, "image", "build", "--from-binary", from, "--output-file", "i.tar")
			if err != nil {
				return nil, err
			}
			return nil, s.replace("m/all.yaml", "IMAGE", strings.TrimSpace(o.stdout))
		}
	}
	agent := "tools: [{name: boxed}]\npolicyRefs: [{name: p}]"
	shell := func(more, script string) string {
		return allowAll + "\n---\nkind: Tool\nmetadata: {name: boxed}\nspec:\n  description: Does it.\n  parameters: {type: object, properties: {n: {type: integer}}}\n" + indent(more) + "  source: {container: {image: 'IMAGE', protocol: Exec, command: [/busybox, sh, -c, " + fmt.Sprintf("%q", script) + "]}}"
	}
	files := map[string]string{"w/a.txt": "text\n", "w/.env": "KEY=canary\n"}
	return []end{
		{name: "container, plugin", agent: agent, steps: one("boxed", "{path: a.txt}"), files: files, docs: allowAll + "\n---\nkind: Tool\nmetadata: {name: boxed}\nspec: {risk: R0, source: {container: {image: 'IMAGE', tool: read}}}", before: image("agentctl-tools"), skip: skip},
		{name: "container, exec", agent: agent, steps: one("boxed", "{n: 1}"), files: files, docs: shell("", "/busybox cat; /busybox pwd | /busybox sed s,.*/,,; /busybox ls -A; echo x > y; echo $?"), before: image("busybox"), skip: skip},
		{name: "container, writes", agent: agent, steps: one("boxed", "{n: 1}"), files: files, docs: shell("workspaceAccess: ReadWrite\nenv: [{name: A, value: b}]", "echo $A > y; /busybox cat y; exit 4"), before: image("busybox"), skip: skip},
		{name: "container, sees", agent: agent, steps: one("boxed", "{n: 1}"), files: files, docs: shell("", inside("/busybox ")), before: image("busybox"), skip: skip},
		{name: "container, limits", agent: agent, steps: one("boxed", "{n: 1}"), files: files, docs: shell("limits: {memory: 64Mi, pids: 40, cpu: 500m}", inside("/busybox ")), before: image("busybox"), skip: skip},
		{name: "container, proxy", agent: agent, steps: one("boxed", "{n: 1}"), files: files, docs: shell("network: {mode: Proxy, allow: [ok.example]}", inside("/busybox ")), before: image("busybox"), skip: skip},
	}
}
