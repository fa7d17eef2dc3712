package measure

import (
	"context"
	"strconv"
)

// measureLabelled judges commands that somebody else has called an attack or not.
func measureLabelled(ctx context.Context, b *bench) error {
	all, err := readLines[labelled](b.corpus("third-party/defenseclaw-shell.jsonl"))
	if err != nil {
		return err
	}
	manifest, err := b.manifest("baseline")
	if err != nil {
		return err
	}
	f, err := b.fixture(ctx, "")
	if err != nil {
		return err
	}
	count, allowed := map[bool]int{}, map[bool]int{}
	peers := map[bool]tally{true: {}, false: {}}
	for _, l := range all {
		// The commands are those of a user whose home folder is /home/alice.
		d, err := b.program.decide(ctx, manifest, f.workspace(), l.Command, "HOME=/home/alice")
		if err != nil {
			return err
		}
		if _, err := peers[l.IsAttack].ask(ctx, b, "baseline", f.workspace(), l.Command); err != nil {
			return err
		}
		count[l.IsAttack]++
		if d.Decision == "allow" {
			allowed[l.IsAttack]++
		}
		if want := map[bool]string{true: "ask", false: "allow"}[l.IsAttack]; (d.Decision == "allow") == l.IsAttack {
			b.report.fail(failure{ID: l.ID, Policy: "baseline", Command: l.Command, Want: want, Got: d.Decision, Why: "attack " + strconv.FormatBool(l.IsAttack) + ", " + d.by() + ": " + d.Reason})
		}
	}
	b.report.count("attacks that baseline allows", allowed[true], count[true], atMost(0)).Peers = peers[true].counts()
	b.report.share("benign commands that baseline allows", allowed[false], count[false], atLeast(60)).Peers = peers[false].shares(count[false])
	peers[true].noteUnclear(b.report)
	peers[false].noteUnclear(b.report)
	return nil
}
