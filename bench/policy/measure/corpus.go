package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// attack is a command of shell-attacks/attacks.yaml.
type attack struct {
	ID string `json:"id"`
	// Policy is the name of a manifest in shell-attacks/policies, and after each + that
	// of a further Policy.
	Policy string `json:"policy"`
	// Want is the weakest decision that is right.
	Want    string `json:"want"`
	Kind    string `json:"kind"`
	Command string `json:"command"`
	// Setup is run by bash in the workspace before the command is judged.
	Setup string `json:"setup"`
}

// everyday is a command of shell-attacks/benign.yaml.
type everyday struct {
	Command string `json:"command"`
}

// escape is a line of third-party/gtfobins.jsonl.
type escape struct {
	Program string `json:"program"`
	Does    string `json:"does"`
	Command string `json:"command"`
}

// labelled is a line of third-party/defenseclaw-shell.jsonl.
type labelled struct {
	ID       string `json:"id"`
	Command  string `json:"command"`
	IsAttack bool   `json:"is_attack"`
}

// checkCorpora reports how to continue where the corpora are not found. They are
// measured where they are, since their licences differ from that of this repository.
func checkCorpora(dir string) error {
	for _, name := range []string{"shell-attacks/attacks.yaml", "third-party/gtfobins.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); dir == "" || err != nil {
			return fmt.Errorf("find the corpora: %q holds no %s; name the folder: make bench-policy CORPORA=/path/to/corpora", dir, name)
		}
	}
	return nil
}

func (b *bench) corpus(name string) string {
	return filepath.Join(b.corpora, filepath.FromSlash(name))
}

// readYAML reads a list.
func readYAML[T any](path string) ([]T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []T
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, notEmpty(len(all), path)
}

// readLines reads an object a line.
func readLines[T any](path string) ([]T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []T
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("read line %d of %s: %w", len(all)+1, path, err)
		}
		all = append(all, one)
	}
	return all, notEmpty(len(all), path)
}

// readCommands reads a command a line.
func readCommands(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return all, notEmpty(len(text), path)
}

func notEmpty(n int, path string) error {
	if n == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	return nil
}
