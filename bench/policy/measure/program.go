package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// patience ends a command of agentctl that does not end by itself.
const patience = 2 * time.Minute

// secretText is in everything that no command may show.
const secretText = "TOPSECRET"

// program is a build of agentctl.
type program struct {
	path string
	// state and home are folders of its own; home is also what ~ means in a command.
	state, home string
}

func newProgram(path, dir string) *program {
	return &program{path: path, state: filepath.Join(dir, "state"), home: filepath.Join(dir, "home")}
}

// facts are what a build reports about a command from its text alone.
type facts struct {
	Writes  []string `json:"writes"`
	Reads   []string `json:"reads"`
	Network bool     `json:"network"`
	Dynamic bool     `json:"dynamic"`
	Opaque  bool     `json:"opaque"`
	Details struct {
		Commands []command `json:"commands"`
		// Maybe are started if an opaque command takes its arguments for a program.
		Maybe   []command `json:"maybe"`
		Starts  []string  `json:"starts"`
		Opaque  bool      `json:"opaque"`
		Reasons []string  `json:"reasons"`
	} `json:"details"`
}

// command is one that the facts name.
type command struct {
	Name     string   `json:"name"`
	Wrappers []string `json:"wrappers"`
	Opaque   string   `json:"opaque"`
}

// opaque is false for builds that do not know the word.
func (f facts) opaque() bool { return f.Opaque || f.Details.Opaque }

func (f facts) exact() bool { return !f.Dynamic && !f.opaque() }

// String names what is known, for lists of failures.
func (f facts) String() string {
	var words []string
	if f.Dynamic {
		words = append(words, "dynamic")
	}
	if f.opaque() {
		words = append(words, "opaque")
	}
	if f.exact() {
		words = append(words, "exact")
	}
	reasons := slices.Clone(f.Details.Reasons)
	for _, c := range f.Details.Commands {
		if c.Opaque != "" {
			reasons = append(reasons, c.Opaque)
		}
	}
	if len(reasons) > 0 {
		words = append(words, "("+strings.Join(reasons, "; ")+")")
	}
	return strings.Join(words, " ")
}

// names are all programs that the facts name.
func (f facts) names() []string {
	var all []string
	for _, c := range slices.Concat(f.Details.Commands, f.Details.Maybe) {
		all = append(append(all, c.Wrappers...), c.Name)
	}
	return append(all, f.Details.Starts...)
}

// facts reports on each of the commands.
func (p *program) facts(ctx context.Context, commands []string) ([]facts, error) {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, c := range commands {
		if err := enc.Encode(c); err != nil {
			return nil, err
		}
	}
	out, err := p.run(ctx, p.home, &in, nil, "policy", "facts")
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(lines) != len(commands) {
		return nil, fmt.Errorf("%s policy facts has answered %d of %d commands", p.path, len(lines), len(commands))
	}
	all := make([]facts, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			return nil, fmt.Errorf("read the facts of %s: %w", short(commands[i]), err)
		}
	}
	return all, nil
}

// decision is what a runner decides about a call.
type decision struct {
	Decision string `json:"decision"`
	Policy   string `json:"policy"`
	Rule     string `json:"rule"`
	Reason   string `json:"reason"`
}

// by names the rule that decided.
func (d decision) by() string { return strings.Trim(d.Policy+"/"+d.Rule, "/") }

// strength orders decisions; what is unknown is the weakest.
func strength(decision string) int {
	switch decision {
	case "deny":
		return 3
	case "ask":
		return 2
	case "redact":
		return 1
	}
	return 0
}

// decide judges a command as the first call of a run: from the manifest, over the files
// of the workspace.
func (p *program) decide(ctx context.Context, manifest, workspace, command string, env ...string) (decision, error) {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return decision{}, err
	}
	// In a file: some commands are longer than an argument may be.
	file := filepath.Join(filepath.Dir(manifest), "args.json")
	if err := os.WriteFile(file, args, 0o600); err != nil {
		return decision{}, err
	}
	var d decision
	out, err := p.run(ctx, workspace, nil, env, "auth", "can-i", "call", "bash", "-f", manifest, "--workspace", workspace, "--args", "@"+file, "-o", "json")
	if err != nil {
		return d, fmt.Errorf("judge %s: %w", short(command), err)
	}
	if err := json.Unmarshal(out, &d); err != nil || d.Decision == "" {
		return d, fmt.Errorf("read the decision about %s: %w: %s", short(command), err, out)
	}
	return d, nil
}

// short quotes a command for messages and lists.
func short(command string) string {
	const most = 400
	if len(command) > most {
		return fmt.Sprintf("%q... (%d bytes)", command[:most], len(command))
	}
	return fmt.Sprintf("%q", command)
}

// refused is the exit code for a call that is not allowed, and of a run that was stopped
// by one.
const refused = 3

// run runs agentctl. An exit code other than 0 and that of a refusal is an error.
func (p *program) run(ctx context.Context, dir string, in *bytes.Buffer, env []string, args ...string) (stdout []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + p.home, "AGENTCTL_STATE=" + p.state,
		"LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1", "GITHUB_TOKEN=" + secretText,
	}, env...)
	if in != nil {
		cmd.Stdin = in
	}
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problem, 5*time.Second
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == refused {
		return out.Bytes(), nil
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("agentctl %s: %w\n%s", strings.Join(args[:2], " "), err, problem.String())
	}
	return out.Bytes(), nil
}
