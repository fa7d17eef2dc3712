package measure

import "context"

// benignGoals are the policies that judge everyday commands, with the least share that
// each has to allow.
var benignGoals = []struct {
	policy string
	goal   float64
}{{"baseline", 95}, {"baseline-host", 60}, {"ci", 60}, {"ci-host", 60}}

// measureBenign judges everyday commands of a coding agent.
func measureBenign(ctx context.Context, b *bench) error {
	commands, err := b.benign()
	if err != nil {
		return err
	}
	f, err := b.fixture(ctx, "")
	if err != nil {
		return err
	}
	for _, g := range benignGoals {
		manifest, err := b.manifest(g.policy)
		if err != nil {
			return err
		}
		allowed := 0
		for _, c := range commands {
			d, err := b.program.decide(ctx, manifest, f.workspace(), c)
			if err != nil {
				return err
			}
			if d.Decision == "allow" {
				allowed++
				continue
			}
			b.report.fail(failure{Policy: g.policy, Command: c, Want: "allow", Got: d.Decision, Why: d.by() + ": " + d.Reason})
		}
		row := b.report.share("everyday commands that "+g.policy+" allows", allowed, len(commands), atLeast(g.goal))
		if g.policy == "baseline" {
			if row.Peers, err = b.peersAllow(ctx, f, commands); err != nil {
				return err
			}
		}
	}
	all, err := b.program.facts(ctx, commands)
	if err != nil {
		return err
	}
	b.knowledge(commands, all, atLeast(70), nil, true)
	return b.compareBefore(ctx, commands, all)
}

// peersAllow is the share that the other programs allow under their own settings.
func (b *bench) peersAllow(ctx context.Context, f fixture, commands []string) (map[string]float64, error) {
	peers := tally{}
	for _, c := range commands {
		if _, err := peers.ask(ctx, b, "baseline", f.workspace(), c); err != nil {
			return nil, err
		}
	}
	peers.noteUnclear(b.report)
	return peers.shares(len(commands)), nil
}

func (b *bench) benign() ([]string, error) {
	all, err := readYAML[everyday](b.corpus("shell-attacks/benign.yaml"))
	commands := make([]string, len(all))
	for i, e := range all {
		commands[i] = e.Command
	}
	return commands, err
}

// knowledge adds how much of the commands is known. The words can both hold for one
// command. Each command that is not exact is listed as a failure.
func (b *bench) knowledge(commands []string, all []facts, exactGoal, dynamicGoal *goal, list bool) {
	exact, dynamic, opaque := 0, 0, 0
	for i, f := range all {
		if f.exact() {
			exact++
			continue
		}
		if f.Dynamic {
			dynamic++
		}
		if f.opaque() {
			opaque++
		}
		if list {
			b.report.fail(failure{Policy: "facts", Command: commands[i], Want: "exact", Got: f.String(), Why: "policy facts"})
		}
	}
	b.report.share("facts are exact", exact, len(all), exactGoal)
	b.report.share("facts are dynamic", dynamic, len(all), dynamicGoal)
	b.report.share("facts are opaque", opaque, len(all), nil)
}

// compareBefore counts the commands that were dynamic for an older build and are opaque
// now: knowing less must not be renamed. What is still dynamic is judged as before.
func (b *bench) compareBefore(ctx context.Context, commands []string, now []facts) error {
	if b.before == "" {
		return nil
	}
	older := *b.program
	older.path = b.before
	then, err := older.facts(ctx, commands)
	if err != nil {
		return err
	}
	was, opaque, only := 0, 0, 0
	for i, f := range then {
		if !f.Dynamic {
			continue
		}
		was++
		if !now[i].opaque() {
			continue
		}
		opaque++
		if !now[i].Dynamic {
			only++
			b.report.fail(failure{Policy: "facts", Command: commands[i], Want: "exact or dynamic", Got: now[i].String(), Why: "it was dynamic for the older build"})
		}
	}
	b.report.count("dynamic for the older build, only opaque now", only, was, atMost(0))
	b.report.count("dynamic for the older build, opaque now", opaque, was, nil)
	return nil
}
