package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/cmd/agentctl/internal/lineedit"
	"agentctl.dev/agentctl/runner"
)

// slash parts a line that is a command from its arguments. A name of which a part was pasted
// is none, and neither is a path.
func slash(l lineedit.Line) (word, rest string, ok bool) {
	word, rest, _ = strings.Cut(l.Text, " ")
	if !strings.HasPrefix(word, "/") || len(l.Pasted) > 0 && l.Pasted[0].From < len(word) {
		return "", "", false
	}
	return word, strings.TrimSpace(rest), !strings.ContainsAny(word[1:], "/\n")
}

// slashCommand is a command of the chat itself.
type slashCommand struct {
	help string
	do   func(ctx context.Context, rest string) (quit bool)
}

// slashes are the commands of the chat, by name.
func (c *chat) slashes() map[string]slashCommand {
	say := c.tell
	choose := func(what string, to *string, now func() string, known func() []string) func(context.Context, string) bool {
		return func(_ context.Context, name string) bool {
			all := known()
			switch {
			case name == "":
				return say(what + " " + now() + "; there are: " + strings.Join(all, ", "))
			case !slices.Contains(all, name):
				return say("there is no " + what + " " + display.Line(name) + "; there are: " + strings.Join(all, ", "))
			}
			*to = name
			return say(what + " " + name + " from the next prompt on")
		}
	}
	own := func(args ...string) func(context.Context, string) bool {
		return func(ctx context.Context, rest string) bool {
			if c.run == nil {
				return say("nothing has been done yet")
			}
			all := []string{}
			for _, arg := range args {
				all = append(all, strings.ReplaceAll(arg, "RUN", "run/"+c.run.ID))
			}
			c.own(ctx, append(all, strings.Fields(rest)...))
			return false
		}
	}
	quit := func(context.Context, string) bool { return true }
	all := map[string]slashCommand{
		"agent": {help: "/agent [NAME]    the agent that answers", do: choose("agent", &c.agent, c.agentNow, func() []string { return c.names().agents })},
		"model": {help: "/model [NAME]    the model that it asks", do: choose("model", &c.model, c.modelNow, func() []string { return c.names().models })},
		"diff":  {help: "/diff            what was changed so far", do: own("diff", "RUN")},
		"cost": {help: "/cost            what the conversation has taken so far", do: func(context.Context, string) bool {
			if c.run == nil {
				return say("nothing yet")
			}
			return say(display.Spent(c.run))
		}},
		"undo": {help: "/undo            take the newest turn back, with its files", do: c.undo},
		"redo": {help: "/redo            undo that, until the next prompt", do: c.redo},
		"fork": {help: "/fork [PLACE]    the next prompt begins a new run from there: turn/N, step/N, or here", do: c.fork},
		"quit": {help: "/quit            end the chat, as Ctrl-D does", do: quit},
		"exit": {do: quit},
	}
	all["help"] = slashCommand{help: "/help            this list", do: func(context.Context, string) bool { return say(c.help(all)) }}
	return all
}

// help lists the commands of the chat and those of the manifests.
func (c *chat) help(all map[string]slashCommand) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].help != "" {
			b.WriteString(all[name].help + "\n")
		}
	}
	for _, name := range runner.Commands(c.paths()) {
		fmt.Fprintf(&b, "/%-15s commands/%s.md\n", name, name)
	}
	b.WriteString("@FILE @FOLDER @AGENT !`COMMAND`  are put beside a prompt\n" +
		"Ctrl-J another line · Tab completes · Ctrl-C ends the turn · Ctrl-D ends the chat\n")
	return b.String()
}

// own runs a command of agentctl about the run, as its own program would.
func (c *chat) own(ctx context.Context, args []string) {
	a := &app{Streams: Streams{In: strings.NewReader(""), Out: c.term, Err: c.term}, getenv: c.app.getenv, color: c.app.color, state: c.app.state, columns: c.app.columns}
	root := a.rootCmd()
	root.SetArgs(args)
	defer c.term.Work()()
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	cmd, err := root.ExecuteContextC(ctx)
	_ = a.report(cmd, err) // it shows the error; the chat has no exit code of it
}

func (c *chat) agentNow() string {
	switch {
	case c.agent != "":
		return c.agent
	case c.run != nil:
		return c.run.Started.Agent
	}
	return "not chosen"
}

func (c *chat) modelNow() string {
	switch {
	case c.model != "":
		return c.model
	case c.run != nil:
		return c.run.Started.Model.Name
	}
	return "that of the agent"
}

// manifestNames are what can be named in a chat.
type manifestNames struct {
	agents, models []string
	// below are the subagents of each agent.
	below map[string][]string
}

// names are those of the manifests; none while these cannot be read.
func (c *chat) names() *manifestNames {
	if c.known != nil {
		return c.known
	}
	n := &manifestNames{below: map[string][]string{}}
	read, err := runner.ReadManifests(c.cmd.Context(), runner.ManifestOptions{Paths: c.paths(), State: c.base.State})
	if err != nil {
		return n
	}
	for name, e := range read.Catalog.Agents {
		n.agents = append(n.agents, name)
		for _, s := range e.Object.Spec.Subagents {
			n.below[name] = append(n.below[name], s.Name)
		}
	}
	n.models = slices.Collect(maps.Keys(read.Catalog.Models))
	slices.Sort(n.agents)
	slices.Sort(n.models)
	c.known = n
	return n
}

// complete offers what can stand at the end of what is written.
func (c *chat) complete(before string) (from int, words []string) {
	if strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \n") {
		for name := range c.slashes() {
			words = append(words, "/"+name)
		}
		for _, name := range runner.Commands(c.paths()) {
			words = append(words, "/"+name)
		}
		return 0, beginning(words, before)
	}
	for _, of := range []struct {
		command string
		names   func() []string
	}{{"/agent ", func() []string { return c.names().agents }}, {"/model ", func() []string { return c.names().models }}} {
		if name, ok := strings.CutPrefix(before, of.command); ok && !strings.Contains(name, " ") {
			return len(of.command), beginning(of.names(), name)
		}
	}
	if place, ok := strings.CutPrefix(before, "/fork "); ok && c.run != nil {
		for _, p := range c.app.placesIn(context.Background(), c.run.ID, place, true) {
			word, _, _ := strings.Cut(p, "\t")
			words = append(words, word)
		}
		return len("/fork "), words
	}
	from = strings.LastIndexAny(before, " \n\t(\"'") + 1
	typed, ok := strings.CutPrefix(before[from:], "@")
	if !ok {
		return from, nil
	}
	words = c.completeFiles(typed)
	agent := c.agentNow()
	if all := c.names().agents; c.agent == "" && c.run == nil && len(all) > 0 {
		agent = all[0]
	}
	words = append(words, beginning(c.names().below[agent], typed)...)
	return from + 1, words
}

// maxFiles bounds the files of a folder that are looked at for a completion.
const maxFiles = 5000

// completeFiles are the files and folders of the workspace that begin so.
func (c *chat) completeFiles(typed string) (words []string) {
	dir, begun := filepath.Split(typed)
	root := c.workspace
	if c.run != nil {
		w := c.run.Started.Workspace
		if root = w.Dir; root == "" || w.Strategy == string(v1alpha1.StrategyInPlace) {
			root = w.Source
		}
	}
	if root == "" {
		root = "."
	}
	if dir != "" && !filepath.IsLocal(dir) {
		return nil
	}
	f, err := os.Open(filepath.Join(root, dir))
	if err != nil {
		return nil
	}
	defer f.Close()                   //nolint:errcheck // nothing was written
	entries, _ := f.ReadDir(maxFiles) // what was read counts
	for _, e := range entries {
		name := dir + e.Name()
		if e.IsDir() {
			name += "/"
		}
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(begun, ".")
		if hidden || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			continue // a name may be anything, and a terminal obeys some
		}
		words = append(words, name)
	}
	return beginning(words, typed)
}

// beginning are the words that begin so, sorted.
func beginning(words []string, typed string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, typed) })
	slices.Sort(words)
	return slices.Compact(words)
}
