package measure

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// The other programs whose decisions are compared.
const (
	openCode = "OpenCode"
	codex    = "Codex"
)

// peer is another program that judges shell commands of a model.
type peer interface {
	name() string
	// decide judges a command under a policy of shell-attacks, as far as the program can
	// express it. The decision is allow, ask, deny, or unclear.
	decide(ctx context.Context, policy, workspace, command string) (string, error)
	close() error
}

// unclear is a decision that could not be read from what the program did.
const unclear = "unclear"

//go:embed peers/package.json peers/package-lock.json
var pinned embed.FS

// installPeers installs the pinned packages into the cache folder of the user, and returns
// that folder.
func installPeers(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", fmt.Errorf("install OpenCode and Codex: %w; install npm, or leave out -peers", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "agentctl-ci", "policy-peers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := pinned.ReadFile("peers/package-lock.json")
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(dir, ".installed")
	if done, err := os.ReadFile(stamp); err == nil && string(done) == string(lock) {
		return dir, nil
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := pinned.ReadFile("peers/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install OpenCode and Codex: %w\n%s", err, out)
	}
	return dir, os.WriteFile(stamp, lock, 0o600)
}

// startPeers starts the other programs. What they allow must not happen: they run where
// each shell is a program that does nothing, and that is tried first.
func (b *bench) startPeers(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stopPeers())
		}
	}()
	installed, err := installPeers(ctx)
	if err != nil {
		return err
	}
	f, err := b.fixture(ctx, "")
	if err != nil {
		return err
	}
	if b.model, err = startModel(); err != nil {
		return err
	}
	o, err := b.startOpenCode(ctx, installed)
	if err != nil {
		return err
	}
	b.peers = append(b.peers, o)
	c, err := b.startCodex(ctx, installed)
	if err != nil {
		return err
	}
	b.peers = append(b.peers, c)
	for _, p := range b.peers {
		canary := filepath.Join(f.workspace(), "canary")
		d, err := p.decide(ctx, "", f.workspace(), "touch "+canary)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(canary); err == nil {
			return fmt.Errorf("%s runs the commands that it judges: nothing more is asked of it", p.name())
		}
		if d != "allow" {
			return fmt.Errorf("%s answers %s about a file in the workspace under its own settings, want allow", p.name(), d)
		}
	}
	return nil
}

func (b *bench) stopPeers() error {
	var err error
	for _, p := range b.peers {
		err = errors.Join(err, p.close())
	}
	b.peers = nil
	if b.model != nil {
		err = errors.Join(err, b.model.close())
		b.model = nil
	}
	return err
}

// permission is an entry of a permission list of agentctl.
type permission struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     string `json:"action"`
}

// list is what other programs can express of a policy of shell-attacks.
type list struct {
	permissions []permission
	// inside is set where a rule denies every path outside the workspace.
	inside bool
}

// readList reads the permission list of a manifest; a policy that is shipped with
// agentctl has none there.
func (b *bench) readList(policy string) (list, error) {
	var l list
	text, err := os.ReadFile(b.corpus("shell-attacks/policies/" + policy + ".yaml"))
	if err != nil {
		return l, err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Kind string
			Spec struct {
				Permissions []permission
				Rules       []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return l, fmt.Errorf("read policy %s: %w", policy, err)
		}
		if object.Kind != "Policy" {
			continue
		}
		l.permissions = append(l.permissions, object.Spec.Permissions...)
		for _, r := range object.Spec.Rules {
			l.inside = l.inside || r.Name == "stay-inside"
		}
	}
	return l, nil
}

// tally counts the decisions of the other programs, by name.
type tally map[string]map[string]int

// ask has each of the other programs judge a command, and counts what they decide.
func (t tally) ask(ctx context.Context, b *bench, policy, workspace, command string) (map[string]string, error) {
	all := map[string]string{}
	for _, p := range b.peers {
		d, err := p.decide(ctx, policy, workspace, command)
		if err != nil {
			return nil, fmt.Errorf("have %s judge %s: %w", p.name(), short(command), err)
		}
		all[p.name()] = d
		if t[p.name()] == nil {
			t[p.name()] = map[string]int{}
		}
		t[p.name()][d]++
	}
	return all, nil
}

// shares are the percentages that each program allows, for the columns of the table.
func (t tally) shares(of int) map[string]float64 {
	all := map[string]float64{}
	for name, counts := range t {
		all[name] = 100 * float64(counts["allow"]) / float64(of)
	}
	return all
}

// counts are the numbers that each program allows.
func (t tally) counts() map[string]float64 {
	all := map[string]float64{}
	for name, counts := range t {
		all[name] = float64(counts["allow"])
	}
	return all
}

// noteUnclear notes how many decisions could not be read.
func (t tally) noteUnclear(r *report) {
	for _, name := range []string{openCode, codex} {
		if n := t[name][unclear]; n > 0 {
			r.note("%d decisions of %s could not be read; they do not count as allowed", n, name)
		}
	}
}
