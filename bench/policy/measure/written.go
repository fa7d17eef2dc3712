package measure

import "context"

// measureWritten reports how much is known of commands that people have written.
func measureWritten(ctx context.Context, b *bench) error {
	commands, err := readCommands(b.corpus("third-party/nl2bash.txt"))
	if err != nil {
		return err
	}
	all, err := b.program.facts(ctx, commands)
	if err != nil {
		return err
	}
	b.knowledge(commands, all, atLeast(50), atMost(20), true)
	return b.compareBefore(ctx, commands, all)
}
