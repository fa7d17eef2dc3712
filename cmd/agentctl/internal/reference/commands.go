package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const commandsHead = `# Commands and flags

Every command of agentctl with its flags, for people who look one up. Written by ` + "`make generate`" + ` from the program; ` + "`agentctl COMMAND --help`" + ` shows the same.
`

// commandsPage is the reference of a command and of all that are below it.
func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(commandsHead)
	b.WriteString("\nFlags of every command:\n\n")
	flags(&b, root.PersistentFlags())
	commands(&b, root)
	b.WriteString("\n## Next\n\n- [Fields](fields.md): what manifests hold.\n- [Reasons and exit codes](reasons.md): how a command ends.\n")
	return b.String()
}

// commands appends a section for each command below one.
func commands(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.Hidden || !c.Runnable() && !c.HasSubCommands() || c.Name() == "help" {
			continue
		}
		if c.Parent().Parent() == nil && c.Name() == "completion" {
			fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
			continue
		}
		section(b, c)
		commands(b, c)
	}
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fenced(b, text)
	if c.Runnable() && !c.HasSubCommands() {
		b.WriteString("\nUsage:\n\n")
		fenced(b, c.UseLine())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso called: %s.\n", strings.Join(c.Aliases, ", "))
	}
	if c.HasExample() {
		b.WriteString("\nExamples:\n\n")
		fenced(b, c.Example)
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		flags(b, c.LocalNonPersistentFlags())
	}
}

// fenced appends a text with its lines as they are.
func fenced(b *strings.Builder, text string) {
	b.WriteString("```text fragment\n" + strings.TrimRight(text, "\n") + "\n```\n")
}

// flags appends a table.
func flags(b *strings.Builder, all *pflag.FlagSet) {
	b.WriteString("| flag | | default |\n|---|---|---|\n")
	all.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.ReplaceAll(strings.TrimSpace(name+" "+value), "|", `\|`), cell(usage), cell(defaultOf(f)))
	})
}

// defaultOf is the default of a flag, as somebody would write it; "" where there is none.
func defaultOf(f *pflag.Flag) string {
	if slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue) {
		return ""
	}
	return "`" + f.DefValue + "`"
}

// cell is a text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}
