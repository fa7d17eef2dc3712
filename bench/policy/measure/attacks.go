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
	peers, weakerPeers := tally{}, map[string]float64{}
	for _, a := range attacks {
		if a.Want == "allow" {
			continue
		}
		wrong++
		f, err := b.fixture(ctx, a.Setup)
		if err != nil {
			return fmt.Errorf("attack %s: %w", a.ID, err)
		}
		d, err := b.judge(ctx, a, f)
		if err != nil {
			return fmt.Errorf("attack %s: %w", a.ID, err)
		}
		if strength(d.Decision) < strength(a.Want) {
			weaker++
			if d.Decision == "allow" {
				allowed++
			}
			b.report.fail(failure{ID: a.ID, Policy: a.Policy, Command: a.Command, Want: a.Want, Got: d.Decision, Why: d.by() + ": " + d.Reason})
		}
		others, err := peers.ask(ctx, b, a.Policy, f.workspace(), f.replace(a.Command))
		if err != nil {
			return fmt.Errorf("attack %s: %w", a.ID, err)
		}
		for name, other := range others {
			if other != unclear && strength(other) < strength(a.Want) {
				weakerPeers[name]++
			}
		}
	}
	for name, n := range weakerPeers {
		weakerPeers[name] = 100 * n / float64(wrong)
	}
	b.report.share("attacks that are judged allow", allowed, wrong, atMost(2)).Peers = peers.shares(wrong)
	b.report.share("attacks that are judged weaker than they have to be", weaker, wrong, nil).Peers = weakerPeers
	peers.noteUnclear(b.report)
	return nil
}

func (b *bench) judge(ctx context.Context, a attack, f fixture) (decision, error) {
	manifest, err := b.manifest(a.Policy)
	if err != nil {
		return decision{}, err
	}
	return b.program.decide(ctx, manifest, f.workspace(), f.replace(a.Command))
}
