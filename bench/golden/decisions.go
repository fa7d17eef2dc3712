package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// question is a call that is judged.
type question struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// decisions has many calls judged without a run: by the policy of README.md and by
// each shipped one. They are cases of "policy test", whose expectations do not matter:
// the report has what was decided.
func decisions(h *harness) ([]scenario, error) {
	commands, err := corpus(h.tree)
	if err != nil {
		return nil, err
	}
	policies, err := judges(h.tree)
	if err != nil {
		return nil, err
	}
	const atOnce = 500
	var all []scenario
	for i, p := range policies {
		asked := questions(commands, h.decisions, uint64(i))
		for n := 0; n < len(asked); n += atOnce {
			some := asked[n:min(n+atOnce, len(asked))]
			all = append(all, scenario{name: fmt.Sprintf("%s/%d", p.name, n), count: len(some), play: func(ctx context.Context, s *stage) error { return s.judged(ctx, p, some) }})
		}
	}
	for n := 0; n < len(commands); n += atOnce {
		some := commands[n:min(n+atOnce, len(commands))]
		all = append(all, scenario{name: fmt.Sprintf("facts/%d", n), count: len(some), play: func(ctx context.Context, s *stage) error { return s.facts(ctx, some) }})
	}
	// What "auth can-i" says beside the decision costs a process for each call.
	for i, q := range questions(commands, min(120, h.decisions), 77) {
		format := []string{"text", "json"}[i%2]
		all = append(all, scenario{name: fmt.Sprintf("can-i/%d", i), play: func(ctx context.Context, s *stage) error {
			args, err := json.Marshal(q.Args)
			if err != nil {
				return err
			}
			p := policies[i%len(policies)]
			m := end{agent: strings.Replace(allTools, "name: p}", "name: "+p.name+"}", 1), steps: "- say: x"}.manifest() + "---\n" + p.text
			if err := s.put("m/all.yaml", m); err != nil {
				return err
			}
			_, err = s.agentctl(ctx, "auth", "can-i", "call", q.Tool, "-f", "m", "--agent", "a", "--workspace", "w", "--args", string(args), "-o", format)
			return err
		}})
	}
	return all, nil
}

// judge is a policy's manifest.
type judge struct{ name, text string }

func judges(tree string) ([]judge, error) {
	readme, err := os.ReadFile(filepath.Join(tree, "README.md"))
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(string(readme), "kind: Policy\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		return nil, fmt.Errorf("README.md shows no policy")
	}
	all := []judge{{"careful", "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\n" + text}}
	packs, err := filepath.Glob(filepath.Join(tree, "policies", "*", "policy.yaml"))
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		all = append(all, judge{filepath.Base(filepath.Dir(p)), string(text)})
	}
	return all, nil
}

// corpus are the shell commands of the tree: those the analysis is tested by, those
// of the shipped policies' cases, and what fuzzing has found.
func corpus(tree string) ([]string, error) {
	var base []string
	var analysed []struct{ Command string }
	text, err := os.ReadFile(filepath.Join(tree, "runner", "policy", "shell", "testdata", "corpus.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &analysed); err != nil {
		return nil, err
	}
	for _, a := range analysed {
		base = append(base, a.Command)
	}
	cases, err := filepath.Glob(filepath.Join(tree, "policies", "*", "tests.yaml"))
	if err != nil {
		return nil, err
	}
	for _, f := range cases {
		var tests struct{ Tests []struct{ Call question } }
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(text, &tests); err != nil {
			return nil, err
		}
		for _, t := range tests.Tests {
			if c, ok := t.Call.Args["command"].(string); ok {
				base = append(base, c)
			}
		}
	}
	found, err := fuzzed(filepath.Join(tree, "runner", "policy"))
	if err != nil {
		return nil, err
	}
	return composed(append(base, found...)), nil
}

// fuzzed are the texts of the fuzz corpora.
func fuzzed(folder string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(filepath.ToSlash(p), "/testdata/fuzz/") {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "string("); ok {
				if s, err := strconv.Unquote(strings.TrimSuffix(inner, ")")); err == nil {
					all = append(all, s)
				}
			}
		}
		return nil
	})
	return all, err
}

// composed are the commands, and each in the shapes in which one stands in a script.
func composed(base []string) []string {
	shapes := []string{
		"%s", "cd sub && %s", "%s > out.txt", "%s 2>&1 | tee log", "sudo %s", "env A=1 %s", "if true; then %s; fi", "for f in *; do %s; done",
		"( %s ) &", "echo $(%s)", "timeout 5 %s || true", "X=y; %s", "f() { %s; }; f", "%s < /etc/passwd", "nohup %s >> ~/.bashrc", "xargs %s",
	}
	var all []string
	for _, c := range base {
		for _, shape := range shapes {
			all = append(all, fmt.Sprintf(shape, c))
		}
		all = append(all, "sh -c "+"'"+strings.ReplaceAll(c, "'", `'\''`)+"'")
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same calls each time
	for range len(base) * 4 {
		a, b := base[random.IntN(len(base))], base[random.IntN(len(base))]
		all = append(all, a+[]string{" && ", " ; ", " | ", " || "}[random.IntN(4)]+b)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(c string) bool { return strings.TrimSpace(c) == "" || len(c) > 4000 })
}

// questions are calls of every shipped tool, three of four of them commands.
func questions(commands []string, n int, seed uint64) []question {
	random := rand.New(rand.NewPCG(3, seed)) //nolint:gosec // the same calls each time
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	path := func() string {
		return pick("a.txt", "sub/b.go", ".env", ".env.example", "~/.ssh/id_rsa", "/etc/passwd", "/etc/shadow", "../x", "/tmp/x", ".git/config", ".git/hooks/pre-commit", "${workspace}/src/main.go",
			"${workspace}", ".", "~/.bashrc", "/home/me/.aws/credentials", "config/prod.env", "a b/ü.txt", "/proc/self/environ", "id_rsa", "key.pem", "/usr/local/bin/git", "node_modules/x/index.js", "blob:sha256:00")
	}
	var all []question
	for range n {
		q := question{Tool: "bash", Args: map[string]any{"command": commands[random.IntN(len(commands))]}}
		switch random.IntN(24) {
		case 0:
			q = question{"read", map[string]any{"path": path()}}
		case 1:
			q = question{"write", map[string]any{"path": path(), "content": pick("x", "token ghp_abcdefghijklmnopqrstuvwxyz0123456789", "")}}
		case 2:
			q = question{"edit", map[string]any{"path": path(), "oldString": "a", "newString": pick("b", "AKIAABCDEFGHIJKLMNOP")}}
		case 3:
			q = question{"grep", map[string]any{"pattern": pick("TODO", "password", "."), "path": path()}}
		case 4:
			q = question{"glob", map[string]any{"pattern": pick("**/*.go", "**/.env", "/etc/*", "../**")}}
		case 5:
			q = question{"list", map[string]any{"path": path()}}
		}
		all = append(all, q)
	}
	return all
}

// judged notes what a policy decides about calls.
func (s *stage) judged(ctx context.Context, p judge, asked []question) error {
	type test struct {
		Name   string   `json:"name"`
		Call   question `json:"call"`
		Expect string   `json:"expect"`
	}
	cases := struct {
		Policy string `json:"policy"`
		Tests  []test `json:"tests"`
	}{Policy: p.name}
	for i, q := range asked {
		cases.Tests = append(cases.Tests, test{"case " + strconv.Itoa(i), q, "deny"})
	}
	text, err := yaml.Marshal(cases)
	if err != nil {
		return err
	}
	if err := s.put("m/policy.yaml", p.text); err != nil {
		return err
	}
	if err := s.put("m/tests.yaml", string(text)); err != nil {
		return err
	}
	o, err := s.quiet(ctx, "policy", "test", "-f", "m", "-o", "json")
	if err != nil {
		return err
	}
	var report struct {
		Policies []struct {
			Cases []struct {
				Name string
				Tool string
				Args json.RawMessage
				Got  json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || len(report.Policies) != 1 || len(report.Policies[0].Cases) < len(asked) {
		return fmt.Errorf("policy test has not judged %d calls: exit code %d: %s%.2000s", len(asked), o.code, o.stderr, o.stdout)
	}
	// The policy's own cases stand before these.
	for _, c := range report.Policies[0].Cases {
		s.note("%s %s: %s", c.Tool, oneLine(c.Args), oneLine(c.Got))
	}
	return nil
}

// oneLine writes a value on one line.
func oneLine(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// facts notes what rules see of commands.
func (s *stage) facts(ctx context.Context, commands []string) error {
	var in strings.Builder
	for _, c := range commands {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		in.Write(line)
		in.WriteByte('\n')
	}
	cmd := s.command(ctx, "policy", "facts")
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("policy facts: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(commands) {
		return fmt.Errorf("policy facts has answered %d of %d commands", len(lines), len(commands))
	}
	for i, c := range commands {
		s.note("%q: %s", c, lines[i])
	}
	return nil
}
