package policy

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/policy/shell"
)

func TestEntriesMatchBehindGlobalOptions(t *testing.T) {
	many := "git" + strings.Repeat(" -C .", 40) + " push"
	for _, c := range []struct {
		entries, script string
		want            message.Action
	}{
		// Denied however the options are written.
		{"deny git push *", "git -C . --no-pager push origin", message.Deny},
		{"deny git push *", "git --odd push", message.Deny},
		{"deny git push *", "git --odd value push", message.Deny},
		{"deny git push *", "git --no-pager log push", message.Allow},
		{"deny git push *", many, message.Deny},
		{"deny npm publish *", "npm -s publish", message.Deny},
		{"deny npm publish *", "npm --loglevel silent publish", message.Deny},
		{"deny npm publish *", "npm --loglevel publish", message.Allow},
		{"deny rm -rf *", "rm --rec --fo x", message.Deny},
		{"deny rm -rf *", "rm x -r -f", message.Deny},
		{"deny rm -rf *", "rm -f x", message.Allow},
		{"deny cp --archive *", "cp -a x y", message.Deny},
		{"deny chmod -R *", "chmod --recurs 700 src", message.Deny},
		{"deny ls --directory *", "ls -ld src", message.Deny},
		{"deny git push --force *", "git push origin main --force", message.Deny},
		{"deny git push --force *", "git -C . push -uf origin", message.Deny},
		{"deny git push --force *", "git push origin", message.Allow},
		{"deny docker ps *", "docker -H tcp://h:1 ps -a", message.Deny},
		{"deny docker run *", "podman --log-level debug run x", message.Deny},
		{"deny docker compose up *", "docker compose -f x.yaml up -d", message.Deny},
		{"deny kubectl delete *", "oc -n web delete pod x", message.Deny},
		{"deny nerdctl push *", "docker push x", message.Deny},
		{"deny env git *", "git status", message.Allow},
		{"deny terraform apply", "terraform -chdir=x apply", message.Deny},
		// Allowed where the options change nothing.
		{"only git log *", "git --no-pager log -3", message.Allow},
		{"only git log *", "git -C . log", message.Allow},
		{"only git log *", "git -C /etc log", message.Ask},
		{"only git log *", "git -c x.y=z log", message.Ask},
		{"only git log *", "git --git-dir=/x log", message.Ask},
		{"only git log *", "git --odd log", message.Ask},
		{"only git log *", "git --no-pager push", message.Ask},
		{"only npm test *", "npm -s test", message.Allow},
		{"only npm test *", "npm --prefix other test", message.Ask},
		{"only kubectl get *", "kubectl --kubeconfig x get pods", message.Ask},
		{"only kubectl get *", "kubectl -n get delete pods", message.Ask},
		{"only kubectl get *", "oc get pods", message.Ask},
		{"only oc get *", "oc -n web get pods", message.Allow},
	} {
		action, pattern, _ := strings.Cut(c.entries, " ")
		text := "permissions: [{permission: bash, action: allow}, {permission: external_directory, action: allow}, {permission: bash, pattern: '" + pattern + "', action: deny}]"
		if action == "only" {
			text = "permissions: [{permission: bash, action: ask}, {permission: bash, pattern: '" + pattern + "', action: allow}]"
		}
		if d := decide(t, engine(t, text), bash(c.script)); d.Action != c.want {
			t.Errorf("%s: %s: %s by %s (%s), want %s", c.entries, c.script, d.Action, d.Rule, d.Message, c.want)
		}
	}
}

func TestAnAllowHoldsBehindHarmlessGlobalOptions(t *testing.T) {
	e := entry{permission: "bash", pattern: "kubectl get *", action: "allow"}
	for line, want := range map[string]bool{
		"kubectl get pods": true, "kubectl -n web get pods": true, "kubectl --namespace=web --context c get pods": true, "kubectl --as root get pods": false, "kubectl --odd get pods": false,
		"kubectl -n get": false, "./kubectl -n web get pods": false,
	} {
		argv := strings.Fields(line)
		c := newCommand(shell.Command{Name: "kubectl", Argv: argv})
		if got := e.matchesCommand(&c); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
