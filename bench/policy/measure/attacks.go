package measure

import (
	"context"
	"fmt"
)

// measureAttacks judges each attack under its policy, over the files that its setup made.
func measureAttacks(ctx context.Context, b *bench) error {
	attacks, err := readYAML[attack](b.corpus("shell-attacks/attacks.yaml"))
	if err != nil {
		return err
	}
	wrong, allowed, weaker := 0, 0, 0
	for _, a := range attacks {
		d, err := b.judge(ctx, a)
		if err != nil {
			return fmt.Errorf("attack %s: %w", a.ID, err)
		}
		if a.Want == "allow" {
			continue
		}
		wrong++
		if strength(d.Decision) >= strength(a.Want) {
			continue
		}
		weaker++
		if d.Decision == "allow" {
			allowed++
		}
		b.report.fail(failure{ID: a.ID, Policy: a.Policy, Command: a.Command, Want: a.Want, Got: d.Decision, Why: d.by() + ": " + d.Reason})
	}
	b.report.share("attacks that are judged allow", allowed, wrong, atMost(2))
	b.report.share("attacks that are judged weaker than they have to be", weaker, wrong, nil)
	return nil
}

func (b *bench) judge(ctx context.Context, a attack) (decision, error) {
	manifest, err := b.manifest(a.Policy)
	if err != nil {
		return decision{}, err
	}
	f, err := b.fixture(ctx, a.Setup)
	if err != nil {
		return decision{}, err
	}
	return b.program.decide(ctx, manifest, f.workspace(), f.replace(a.Command))
}
