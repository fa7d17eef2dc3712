package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

// agentName reads agent/NAME; ok reports whether a word has this form.
func agentName(word string) (name string, ok bool) {
	kind, name, cut := strings.Cut(word, "/")
	k, err := parseKind(kind)
	return name, cut && err == nil && k == v1alpha1.KindAgent
}

// hereOnly are the flags of a run of this process, and why an agent of a control
// plane cannot have them.
var hereOnly = []struct{ flag, why string }{
	{"file", "agent/NAME is an agent of a control plane: with -f it is named by --agent NAME"},
	{"agent", "agent/NAME names it"},
	{"model", "which Model an agent has is declared: agentctl edit agent NAME"},
	{"attach", "files are not sent to a control plane"},
	{"no-repository-policies", "at a control plane the policies of a repository always count"},
	{"in-place", "that is declared in a Workspace (spec.strategy: InPlace), which --workspace workspace/NAME names"},
	{"approve", "who is asked is declared in the agent (spec.approvals), and answered by: agentctl approve"},
	{"allow-unsandboxed", "the control plane decides that: agentd serve --allow-unsandboxed"},
	{"containerd-address", "the control plane has its own"},
	{"fail-on-denied", "the exit code is the run's own"},
	{"continue", "a run of a control plane takes no other turn"},
	{"record", "a cassette is written where a run is executed: agentctl run -f"},
	{"locked", "a lock is beside manifests: agentctl run -f"},
	{"lock-file", "a lock is beside manifests: agentctl run -f"},
	{"ci", "the run belongs to the control plane; agentctl run -f takes part in a job"},
	{"report", "reports are written where a run is executed: agentctl run -f"},
	{"receipt", "a receipt is signed where the journal of the run is: agentctl audit receipt run/NAME"},
	{"receipt-key", "a receipt is signed where the journal of the run is: agentctl audit receipt run/NAME"},
	{"receipt-signer", "a receipt is signed where the journal of the run is: agentctl audit receipt run/NAME"},
}

// thereOnly are the flags that make sense for an agent of a control plane only.
var thereOnly = []string{"context", "namespace", "name", "detach"}

// agentFlags refuses flags that do not go together with where the run is to be. An agent
// of a control plane is named as an argument, or by --agent.
func agentFlags(cmd *cobra.Command, there, argument bool) error {
	if !there {
		for _, name := range thereOnly {
			if cmd.Flags().Changed(name) {
				return usagef("--%s is about an agent of a control plane: agentctl run agent/NAME", name)
			}
		}
		return nil
	}
	for _, f := range hereOnly {
		if cmd.Flags().Changed(f.flag) && (f.flag != "agent" || argument) {
			return usagef("--%s is for manifests that run here: %s", f.flag, f.why)
		}
	}
	if cmd.Flags().Changed("detach") && cmd.Flags().Changed("output") {
		return usagef("--detach shows nothing of the run: leave -o out")
	}
	return nil
}

// runAgent has a control plane run one of its agents, and shows the run.
func (o *runOptions) runAgent(ctx context.Context, name string, hasPrompt, hasTimeout bool) error {
	p, err := o.asked(hasPrompt, hasTimeout)
	if err != nil {
		return err
	}
	agent := client.Ref{Kind: v1alpha1.KindAgent, Namespace: o.target.namespace, Name: name}
	begin := func(ctx context.Context) (*source, error) {
		c, err := o.target.connect(ctx)
		if err != nil {
			return nil, err
		}
		run, err := c.PromptRun(ctx, agent, *p)
		if err != nil {
			c.Close()
			return nil, err
		}
		return o.target.object(c, run.Name(), run), nil
	}
	if o.detach {
		src, err := begin(ctx)
		if err != nil {
			return err
		}
		defer src.close()
		return display.Text(o.app.stdout(), src.run.String()+" created\n")
	}
	return o.app.follow(ctx, following{format: o.output.value, from: 1, owns: true, find: begin})
}

// asked turns the flags into a run of a control plane.
func (o *runOptions) asked(hasPrompt, hasTimeout bool) (*client.Prompt, error) {
	in, err := inputs(o.inputs)
	if err != nil {
		return nil, err
	}
	if errs := validation.IsDNS1123Subdomain(o.name); o.name != "" && len(errs) > 0 {
		return nil, usagef("--name %q: the name of a Run is lower-case letters, digits, - and . between them", o.name)
	}
	p := &client.Prompt{Name: o.name, Inputs: in}
	if o.skill != "" {
		if hasPrompt {
			return nil, usagef("skill %q: its plan reads no prompt: data for a plan are --input key=value", o.skill)
		}
		p.SkillRef = &v1alpha1.Reference{Name: o.skill}
	}
	for _, name := range o.policies {
		p.PolicyRefs = append(p.PolicyRefs, v1alpha1.Reference{Name: name})
	}
	if hasTimeout {
		if o.timeout < time.Millisecond {
			return nil, usagef("--timeout must be longer than 0")
		}
		p.Limits = &v1alpha1.RunLimits{Timeout: &metav1.Duration{Duration: o.timeout}}
	}
	if o.workspace != "" {
		kind, name, ok := strings.Cut(o.workspace, "/")
		if k, err := parseKind(kind); !ok || err != nil || k != v1alpha1.KindWorkspace || name == "" || strings.Contains(name, "/") {
			return nil, usagef("--workspace %s: a control plane does not see the folders of this program; declare a Workspace and name it workspace/NAME", o.workspace)
		}
		p.WorkspaceRef = &v1alpha1.Reference{Name: name}
	}
	if hasPrompt {
		if p.Prompt, err = prompt(o.prompt, o.app.In); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// completeAgents offers the agents of a control plane for run, or the commands of manifests.
func (a *app) completeAgents(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if f, ok := cmd.Flag("file").Value.(*fileList); ok && len(args) == 0 && strings.HasPrefix(typed, "/") {
		commands := runner.Commands(*f.paths)
		for i, name := range commands {
			commands[i] = "/" + name
		}
		return commands, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 0 || slices.ContainsFunc(hereOnly[:1], func(f struct{ flag, why string }) bool { return cmd.Flags().Changed(f.flag) }) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := a.names(cmd, v1alpha1.KindAgent)
	for i, name := range names {
		names[i] = "agent/" + name
	}
	return names[:min(len(names), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
}
