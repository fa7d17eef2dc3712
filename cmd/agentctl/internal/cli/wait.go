package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

type waitOptions struct {
	target
	goals    []string
	selector string
	all      bool
	timeout  time.Duration
}

func (a *app) waitCmd() *cobra.Command {
	o := &waitOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "wait KIND NAME... | KIND/NAME... --for=GOAL",
		Short: "Wait until runs, or objects of a control plane, are as they should be",
		Long: `Wait until runs, or objects of a control plane, are as they should be.

A goal is condition=TYPE, condition=TYPE=STATUS, jsonpath={PATH}=VALUE, create
or delete; of several, all have to be reached. A condition that speaks of an
earlier state of the object does not count. Without --for the goal of runs is
condition=Succeeded, that of approvals a decision, and that of any other kind
condition=Ready.

A run is named as "agentctl help names" says. For one of the state folder a goal can
be about the condition Succeeded and about status.phase, steps, cost,
pendingApprovals and output; the wait ends when the run has ended in another way.

Exit code 0: all are. 1: one cannot be waited for. 124: --timeout has passed.`,
		Example: `  agentctl wait agent/reviewer --timeout 10s
  agentctl wait run/@latest --timeout 10m
  agentctl wait run/r1 --for=jsonpath='{.status.phase}'=Running
  agentctl wait runs -l team=web --for=delete`,
		GroupID:           groupObject,
		Args:              someObject,
		ValidArgsFunction: a.completeGet,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runWait(cmd.Context(), args) },
	}
	cmd.Flags().StringArrayVar(&o.goals, "for", nil, "the `goal`; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("for", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"condition=Ready", "condition=Succeeded", "create", "delete", "jsonpath="}, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for a flag that is not there
	selectorFlag(cmd, &o.selector)
	cmd.Flags().BoolVar(&o.all, "all", false, "every object of the kind in the namespace")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait at most")
	o.flags(cmd)
	return cmd
}

// goal is one of --for.
type goal struct {
	text string
	met  client.Goal
}

func (o *waitOptions) parse(kind string) ([]goal, error) {
	texts := o.goals
	if len(texts) == 0 {
		texts = []string{"condition=" + v1alpha1.ConditionReady}
		if kind == v1alpha1.KindRun {
			texts = []string{"condition=" + v1alpha1.ConditionSucceeded}
		}
		if kind == v1alpha1.KindApproval {
			texts = []string{"jsonpath={.status.decision}"}
		}
	}
	goals := make([]goal, len(texts))
	for i, text := range texts {
		met, err := parseGoal(text)
		if err != nil {
			return nil, err
		}
		goals[i] = goal{text, met}
	}
	return goals, nil
}

func parseGoal(text string) (client.Goal, error) {
	word, rest, _ := strings.Cut(text, "=")
	switch {
	case text == "delete":
		return client.Gone, nil
	case text == "create":
		return client.Exists, nil
	case word == "condition" && rest != "":
		name, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		return condition(name, status), nil
	case word == "jsonpath" && rest != "":
		return pathGoal(rest)
	}
	if text != "" && rest == "" && text[0] >= 'A' && text[0] <= 'Z' {
		return nil, usagef("--for=%s: did you mean --for=condition=%s?", text, text)
	}
	return nil, usagef("--for=%s: a goal is condition=TYPE, jsonpath={PATH}=VALUE, create or delete", text)
}

// condition wants one of a status that speaks of the object as it is now.
func condition(name, status string) client.Goal {
	return func(o client.Object) bool {
		for _, c := range o.Conditions() {
			if strings.EqualFold(c.Type, name) {
				old := c.Generation != 0 && c.Generation < o.Number("metadata", "generation")
				return !old && strings.EqualFold(c.Status, status)
			}
		}
		return false
	}
}

// pathGoal requires a value at a path, or any value.
func pathGoal(text string) (client.Goal, error) {
	path, value, given := text, "", false
	if i := strings.LastIndex(text, "}="); i >= 0 {
		path, value, given = text[:i+1], text[i+2:], true
	} else if !strings.Contains(text, "{") {
		path, value, given = strings.Cut(text, "=")
	}
	p, err := parsePath(strings.Trim(path, "'"))
	if err != nil {
		return nil, usagef("--for: %w", err)
	}
	return func(o client.Object) bool {
		if o == nil {
			return false
		}
		got, err := runPath(p, map[string]any(o))
		return err == nil && (given && got == value || !given && got != "")
	}, nil
}

func (o *waitOptions) runWait(ctx context.Context, args []string) error {
	if named, ok := runWordsOf(args); ok && len(named) > 0 && o.selector == "" && !o.all {
		return o.waitNamed(ctx, named)
	}
	get := getOptions{target: o.target, selector: o.selector}
	w, err := get.wanted(args)
	if err != nil {
		return err
	}
	goals := make([][]goal, 0, len(w.kinds))
	for _, kind := range w.kinds {
		g, err := o.parse(kind)
		if err != nil {
			return err
		}
		goals = append(goals, g)
	}
	picks := o.selector != "" || o.all
	switch {
	case len(w.refs) == 0 && !picks:
		return usagef("say which %s: a name, -l or --all", plural(w.kinds[0]))
	case o.timeout <= 0:
		return usagef("--timeout %s is not more than 0", o.timeout)
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if picks {
		found, _, err := get.fetch(ctx, c, w)
		if err != nil {
			return err
		}
		for _, x := range found {
			w.refs = append(w.refs, x.Ref())
		}
		if len(w.refs) == 0 {
			return fmt.Errorf("%s: there is nothing to wait for", get.nothing(c, w))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for i, kind := range w.kinds {
		for _, ref := range w.refs {
			if ref.Kind == kind {
				if err := o.await(ctx, c, ref, goals[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (o *waitOptions) await(ctx context.Context, c *client.Client, ref client.Ref, goals []goal) error {
	for _, g := range goals {
		if g.text != "create" && g.text != "delete" {
			if _, err := c.Get(ctx, ref); err != nil && ctx.Err() == nil {
				return err // one has to be there to become something
			}
		}
		err := c.Await(ctx, ref, g.met)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return timedOut(ref, g.text, o.timeout, o.state(ctx, c, ref, g))
		}
		if err != nil {
			return fmt.Errorf("wait for %s of %s: %w", g.text, ref, err)
		}
	}
	if err := display.Text(o.app.stdout(), ref.String()+" condition met\n"); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

// stateTime is how long a wait that was in vain asks for the reason.
const stateTime = 10 * time.Second

// state says why an object does not have the condition that was waited for.
func (o *waitOptions) state(ctx context.Context, c *client.Client, ref client.Ref, g goal) string {
	word, name, _ := strings.Cut(g.text, "=")
	if word != "condition" {
		return ""
	}
	name, _, _ = strings.Cut(name, "=")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateTime)
	defer cancel()
	x, err := c.Get(ctx, ref)
	if err != nil {
		return ""
	}
	var known []string
	for _, s := range x.Conditions() {
		if strings.EqualFold(s.Type, name) {
			return strings.TrimSuffix(fmt.Sprintf(": it is %s (%s): %s", s.Status, s.Reason, s.Message), ": ")
		}
		known = append(known, s.Type)
	}
	if len(known) > 0 {
		return ": its conditions are " + strings.Join(known, ", ")
	}
	return ""
}

// timedOut is the end of a wait that took too long.
func timedOut(ref client.Ref, what string, after time.Duration, why string) error {
	return &codeError{fmt.Errorf("%s: not %s after %s%s", ref, what, after, why), reason.ExitWait}
}
