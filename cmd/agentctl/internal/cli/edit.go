package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
)

type editOptions struct{ target }

func (a *app) editCmd() *cobra.Command {
	o := &editOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "edit KIND NAME | KIND/NAME",
		Short: "Change an object of a control plane in an editor",
		Long: `Change an object of a control plane in the editor of $AGENTCTL_EDITOR, $VISUAL
or $EDITOR.

What is not a valid manifest is not sent; neither is an object that somebody
else has changed in the meantime. What was written is kept in a file then.`,
		Example:           `  EDITOR=vi agentctl edit agent reviewer`,
		GroupID:           groupObject,
		Args:              someObject,
		ValidArgsFunction: a.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runEdit(cmd.Context(), args) },
	}
	o.flags(cmd)
	return cmd
}

func (o *editOptions) runEdit(ctx context.Context, args []string) error {
	w, err := parseWanted(args, o.namespace)
	if err != nil {
		return err
	}
	if !w.single || len(w.refs) != 1 {
		return usagef("one object can be edited at a time: KIND NAME")
	}
	editor, err := o.editor()
	if err != nil {
		return err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	before, err := c.Get(ctx, w.refs[0])
	if err != nil {
		return err
	}
	before = before.WithoutManagedFields()
	text, err := display.YAML(withoutStatus(before))
	if err != nil {
		return fmt.Errorf("write %s as YAML: %w", before.Ref(), err)
	}
	path, after, err := o.write(ctx, editor, before.Ref(), text)
	if err != nil {
		return err
	}
	if bytes.Equal(text, after) {
		_ = os.Remove(path) // a copy of what there is
		display.Notice(o.app.stderr(), "nothing was changed")
		return nil
	}
	if err := o.send(ctx, c, before, path); err != nil {
		display.Notice(o.app.stderr(), "what was written is kept in "+path)
		return err
	}
	_ = os.Remove(path) // it is in the control plane now
	return display.Text(o.app.stdout(), before.Ref().String()+" edited\n")
}

func withoutStatus(o client.Object) client.Object {
	out := client.Object{}
	for k, v := range o {
		if k != "status" {
			out[k] = v
		}
	}
	return out
}

// editor is the program that people edit with, and its arguments.
func (o *editOptions) editor() ([]string, error) {
	for _, name := range []string{"AGENTCTL_EDITOR", "VISUAL", "EDITOR"} {
		if argv := strings.Fields(o.app.getenv(name)); len(argv) > 0 {
			return argv, nil
		}
	}
	return nil, usagef("there is no editor: set EDITOR")
}

// write lets somebody edit a text, in a file that only they can read.
func (o *editOptions) write(ctx context.Context, editor []string, ref client.Ref, text []byte) (path string, after []byte, err error) {
	f, err := os.CreateTemp("", "agentctl-edit-*.yaml")
	if err != nil {
		return "", nil, fmt.Errorf("edit %s: %w", ref, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, fmt.Errorf("edit %s: %w", ref, err)
	}
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.app.In, o.app.Err, o.app.Err
	if f, ok := o.app.Out.(*os.File); ok && o.app.stdout().TTY {
		cmd.Stdout = f // it draws on the terminal
	}
	if err := cmd.Run(); err != nil {
		return "", nil, fmt.Errorf("edit %s with %s: %w; the file is %s", ref, editor[0], err, f.Name())
	}
	after, err = os.ReadFile(f.Name())
	if err != nil {
		return "", nil, fmt.Errorf("edit %s: %w", ref, err)
	}
	return f.Name(), after, nil
}

// send writes the whole object, so that a line that was taken out is gone. The
// version it was read at goes along: somebody else's change is not lost.
func (o *editOptions) send(ctx context.Context, c *client.Client, before client.Object, path string) error {
	d, err := runner.Declare(ctx, runner.DeclareOptions{Paths: []string{path}})
	if err != nil {
		return err
	}
	if len(d.Objects) != 1 {
		return usagef("the file holds %d objects, not one", len(d.Objects))
	}
	x := client.Object(d.Objects[0].Object)
	if x.Kind() != before.Kind() || x.Name() != before.Name() || x.Namespace() != before.Namespace() {
		return usagef("kind, name and namespace of an object cannot be changed")
	}
	meta, ok := x["metadata"].(map[string]any)
	if !ok {
		return usagef("the file holds no metadata")
	}
	_, err = c.Change(ctx, before, func(now client.Object) (client.Object, error) {
		if client.Differ(before, now) {
			now = before // what somebody else declared is not overwritten: the server says so
		}
		meta["resourceVersion"] = now.ResourceVersion()
		return c.Replace(ctx, x, client.WriteOptions{As: "edit"})
	})
	return err
}
