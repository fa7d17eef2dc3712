package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// The places of listedRun.Where. A control plane that is not the local one has its
// context behind it.
const (
	inStateFolder  = "state-folder"
	atControlPlane = "control-plane"
)

// listedRun is a run in a list: one of the state folder, a Run object of a control
// plane, or both.
type listedRun struct {
	runs.Summary
	// Where is state-folder, or control-plane for a Run object.
	Where string `json:"where"`
	// Object that the run is executed for; nil for any other run.
	Object *runObject `json:"object,omitempty"`

	// waiting counts the approvals that an object waits for.
	waiting int
	// depth is how many runs of the list are above it, where it is a subagent's.
	depth int
	// elsewhere: the object is not in the namespace in which names are looked up.
	elsewhere bool
}

// runObject is a Run object in a list.
type runObject struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// runList is what programs read of several runs.
type runList struct {
	Items []listedRun `json:"items"`
}

// local are runs of the state folder as a list has them.
func local(all []runs.Summary) []listedRun {
	out := make([]listedRun, len(all))
	for i := range all {
		out[i] = listedRun{Summary: all[i], Where: inStateFolder}
	}
	return out
}

// runGetRuns lists the runs of the state folder and the Run objects of the control
// plane that is meant, if it runs. A Run object whose run is in the state folder is
// one run.
func (o *getOptions) runGetRuns(ctx context.Context) error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	here, err := runs.List(ctx, state)
	if err != nil {
		return err
	}
	objects, at, missed := o.runObjects(ctx)
	if err := o.write(asTree(merge(here, objects, at)), false, state); err != nil {
		return err
	}
	if missed != nil && o.meant() {
		return missed
	}
	if missed != nil {
		display.Notice(o.app.stderr(), "the runs of the control plane are left out: "+missed.Error())
	}
	return nil
}

// controlPlane is where listed objects are, and the namespace in which names are looked up.
type controlPlane struct{ where, namespace string }

// runObjects lists the Run objects of the control plane that is meant. The local one
// is not started for it.
func (o *getOptions) runObjects(ctx context.Context) ([]client.Object, controlPlane, error) {
	if !o.meant() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	config, err := o.config()
	if err != nil {
		return nil, controlPlane{}, err
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if errors.Is(err, client.ErrNotRunning) {
		return nil, controlPlane{}, nil
	}
	if err != nil {
		return nil, controlPlane{}, err
	}
	defer c.Close()
	at := controlPlane{where: atControlPlane, namespace: c.Namespace("")}
	if e := c.Endpoint(); !e.Local {
		at.where += "/" + e.Context
	}
	all, _, err := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, AllNamespaces: o.all})
	return all, at, err
}

// merge makes one list, the newest first. Of several attempts of an object the newest
// is listed.
func merge(here []runs.Summary, objects []client.Object, at controlPlane) []listedRun {
	byUID := make(map[string]client.Object, len(objects))
	for _, x := range objects {
		byUID[x.Text("metadata", "uid")] = x
	}
	seen := map[string]bool{}
	all := make([]listedRun, 0, len(here)+len(objects))
	for _, r := range local(here) {
		if name, ok := objectOf(r.Name); ok {
			uid := uidOf(r.Name, name)
			if seen[uid] {
				continue
			}
			if x := byUID[uid]; x != nil {
				seen[uid] = true
				r.at(x, at)
			}
		}
		all = append(all, r)
	}
	for _, x := range objects {
		if !seen[x.Text("metadata", "uid")] {
			all = append(all, fromObject(x, at))
		}
	}
	slices.SortStableFunc(all, func(a, b listedRun) int { return b.StartTime.Compare(a.StartTime) })
	return all
}

// asTree puts the runs of subagents behind the run that has started them, in the order in
// which they began.
func asTree(all []listedRun) []listedRun {
	there := make(map[string]bool, len(all))
	for i := range all {
		there[all[i].Name] = true
	}
	children := map[string][]listedRun{}
	var roots []listedRun
	for i := range all {
		if p := all[i].Parent; p != "" && p != all[i].Name && there[p] {
			children[p] = append(children[p], all[i])
		} else {
			roots = append(roots, all[i])
		}
	}
	out := make([]listedRun, 0, len(all))
	var add func(r listedRun, depth int)
	add = func(r listedRun, depth int) {
		r.depth = depth
		out = append(out, r)
		below := children[r.Name]
		delete(children, r.Name)
		for _, c := range slices.Backward(below) {
			add(c, depth+1)
		}
	}
	for i := range roots {
		add(roots[i], 0)
	}
	for len(children) > 0 { // journals that name each other as parents
		for p := range children {
			for _, r := range children[p] {
				add(r, 0)
			}
			delete(children, p)
			break
		}
	}
	return out
}

func (r *listedRun) at(x client.Object, p controlPlane) {
	r.Where, r.Object = p.where, &runObject{x.Name(), x.Namespace()}
	r.elsewhere = x.Namespace() != p.namespace
}

// fromObject is a Run object whose journal is not in the state folder.
func fromObject(x client.Object, p controlPlane) listedRun {
	r := listedRun{waiting: int(x.Number("status", "pendingApprovals"))}
	r.at(x, p)
	r.Summary = runs.Summary{
		Name: x.Name(), Agent: x.Text("spec", "agentRef", "name"), Model: x.Text("spec", "modelRef", "name"),
		Phase: x.Text("status", "phase"), StartTime: x.Created(), Steps: int(x.Number("status", "steps")), Waiting: []string{},
		Journal: x.Text("status", "journal", "path"),
	}
	if r.Phase == "" {
		r.Phase = string(v1alpha1.PhasePending)
	}
	for _, c := range x.Conditions() {
		if c.Type == v1alpha1.ConditionSucceeded && c.Status != "Unknown" || r.Reason == "" && c.Status != "True" {
			r.Reason, r.Message = c.Reason, c.Message
		}
	}
	r.Tokens = message.Usage{Input: x.Number("status", "tokens", "input"), Output: x.Number("status", "tokens", "output")}
	if cost := new(message.Cost); cost.UnmarshalText([]byte(x.Text("status", "cost"))) == nil {
		r.Cost = cost
	}
	return r
}

// ref is the name under which every verb finds the run, as -o name prints it.
func (r *listedRun) ref() string {
	if r.Object != nil && (!r.elsewhere || r.Name == r.Object.Name) {
		return client.Ref{Kind: v1alpha1.KindRun, Name: r.Object.Name}.String()
	}
	return "run/" + r.Name
}

func (o *getOptions) write(listed []listedRun, one bool, state string) error {
	if err := o.writeRuns(listed, one, state); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

func (o *getOptions) writeRuns(listed []listedRun, one bool, state string) error {
	out := o.app.stdout()
	switch {
	case o.output.kind == display.FormatJSON && one:
		return display.WriteObject(out, listed[0])
	case o.output.kind == display.FormatJSON:
		return display.WriteObject(out, runList{Items: listed})
	case o.output.structured() && one:
		return o.output.write(out, listed[0])
	case o.output.structured():
		return o.output.write(out, runList{Items: listed})
	case len(listed) == 0 && o.output.kind != display.FormatName:
		display.Notice(o.app.stderr(), "no runs in "+state)
		return nil
	}
	list := display.RunList{Runs: make([]display.ListedRun, len(listed)), Now: time.Now(), Format: o.output.kind, NoHeaders: o.noHeaders, Namespaces: o.all}
	for i := range listed {
		r := &listed[i]
		list.Runs[i] = display.ListedRun{
			Name: r.Name, Ref: r.ref(), Where: r.Where, Agent: r.Agent, Model: r.Model, Phase: r.Phase, Reason: r.Reason, Started: r.StartTime, Steps: r.Steps,
			Cost: r.Cost, Tokens: r.Tokens.Total(), Worked: time.Duration(r.DurationMs) * time.Millisecond, Waiting: max(len(r.Waiting), r.waiting), Source: r.Source, Depth: r.depth,
		}
		if r.Object != nil {
			list.Runs[i].Name, list.Runs[i].Namespace = r.Object.Name, r.Object.Namespace
		}
	}
	return list.Write(out)
}
