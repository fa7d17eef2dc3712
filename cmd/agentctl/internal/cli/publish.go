package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/publish"
)

// publishOptions are the flags of apply-changes that are about publications.
type publishOptions struct {
	publish, yes, dryRun bool
	digest               string
	files                []string
}

func (o *publishOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.publish, "publish", false, "show what the run has prepared for publication; with --yes, send it")
	f.BoolVar(&o.yes, "yes", false, "with --publish: send it")
	f.BoolVar(&o.dryRun, "dry-run", false, "with --publish: send nothing (the default without --yes)")
	f.StringVar(&o.digest, "digest", "", "with --publish --yes: send exactly what has this `digest`, also what the policies ask about")
	files(cmd, &o.files)
	f.Lookup("file").Usage = "with --publish: " + f.Lookup("file").Usage + "; their policies judge what is sent"
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
}

// check refuses flags that have no effect.
func (o *publishOptions) check() error {
	switch {
	case !o.publish && (o.yes || o.dryRun || o.digest != "" || len(o.files) > 0):
		return usagef("--yes, --dry-run, --digest, -f and -k are for --publish")
	case o.digest != "" && !o.yes:
		return usagef("--digest is for --yes")
	case o.publish && len(o.files) == 0:
		return usagef("name the manifests with -f: what a run has prepared is judged by the policies as they are now")
	}
	return nil
}

// runPublish shows what a run has prepared, or sends it.
func (o *applyChangesOptions) runPublish(ctx context.Context, src *source, id string) error {
	options := publish.Options{Ref: id, State: src.state, Paths: o.files, Stdin: o.app.In, By: who(o.app.In), Digest: o.digest}
	act := publish.Show
	if o.yes {
		act = publish.Send
	}
	p, failed := act(ctx, options)
	if p == nil {
		return failed
	}
	stdout := o.app.stdout()
	var err error
	if o.output.value == display.FormatJSON {
		err = published(p, o.yes).WriteJSON(stdout)
	} else {
		err = published(p, o.yes).Write(stdout, "send it: agentctl apply-changes run/"+p.Run+" --publish -f "+strings.Join(o.files, " -f ")+" --yes --digest "+p.Digest)
	}
	if failed != nil {
		return failed
	}
	return err
}

// published is a plan for a person.
func published(p *publish.Plan, sent bool) *display.Publication {
	out := &display.Publication{Run: p.Run, Agent: p.Agent, Digest: p.Digest, Sent: sent, Object: p}
	for i := range p.Items {
		it := &p.Items[i]
		out.Items = append(out.Items, display.PublishedItem{
			Name: it.Name, Type: it.Type, Target: it.Target, State: string(it.State), Decision: string(it.Decision), Rule: it.Rule, Reason: it.Reason,
			Title: it.Title, Text: it.Text, URL: it.URL, Error: it.Error, Files: it.Files,
		})
	}
	return out
}
