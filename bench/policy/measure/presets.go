package measure

import (
	"context"
	"fmt"
)

// measurePresets runs the command of each attack with the shell of a preset that must not
// change files, on the files themselves and with every question answered by yes: once
// under the policies of the preset, and once where a policy allows each call, so that only
// the mount is in the way. There a command may write elsewhere.
func measurePresets(ctx context.Context, b *bench) error {
	attacks, err := readYAML[attack](b.corpus("shell-attacks/attacks.yaml"))
	if err != nil {
		return err
	}
	for _, preset := range []string{"plan", "explore"} {
		for _, c := range []struct{ name, policies, allow string }{
			{"with its policies", "", ""},
			{"where all is allowed", "\n  policyRefs: [{name: all}]", "---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: all}\nspec: {default: allow, permissions: [{permission: \"*\", action: allow}]}\n"},
		} {
			changes := 0
			for _, a := range attacks {
				manifest := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  preset: " + preset + "\n  modelRef: {name: s}" + c.policies + "\n" + c.allow
				changed, err := b.changedBy(ctx, a, manifest, c.allow == "")
				if err != nil {
					return fmt.Errorf("attack %s, preset %s: %w", a.ID, preset, err)
				}
				if changed != "" {
					changes++
					b.report.fail(failure{ID: a.ID, Policy: preset, Command: a.Command, Want: "no change", Got: "changed " + changed, Why: c.name})
				}
			}
			b.report.count("files changed by the shell of preset "+preset+" "+c.name, changes, len(attacks), atMost(0))
		}
	}
	return nil
}

// changedBy names the first file that a run of the agent with the command has changed.
func (b *bench) changedBy(ctx context.Context, a attack, agent string, outside bool) (string, error) {
	f, err := b.fixture(ctx, a.Setup)
	if err != nil {
		return "", err
	}
	script, err := calls(f.replace(a.Command))
	if err != nil {
		return "", err
	}
	manifest, err := b.writeManifest("preset", agent+"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: s}\nspec: {provider: scripted, scripted: {"+script+"}}\n")
	if err != nil {
		return "", err
	}
	before, err := f.snapshot()
	if err != nil {
		return "", err
	}
	if _, err := b.program.execute(ctx, manifest, f.workspace(), true, "--approve", "all"); err != nil {
		return "", err
	}
	after, err := f.snapshot()
	if err != nil {
		return "", err
	}
	folders := []string{"project"}
	if outside {
		folders = append(folders, "out")
	}
	return before.changed(after, folders...), nil
}
