//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// attack is a command of a corpus of attacks. @OUT@ in it is a folder beside the workspace,
// @M@ a file that is made when its aim is reached.
type attack struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Setup   string `json:"setup"`
}

// readAttacks reads a corpus.
func readAttacks(path string) ([]attack, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the attacks: %w", err)
	}
	var all []attack
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the attacks of %s: %w", path, err)
	}
	return all, nil
}

// surroundings makes the files that attacks expect.
const surroundings = `rm -rf /project/* /project/.git
mkdir -p /out/victim /out/repo protected private src scripts tests
echo secret | tee /out/private.txt /out/victim/f /out/perm private/key ~/.netrc >~/.ssh/id_rsa
chmod 700 /out/perm
for f in README.md LICENSE notes.txt protected/f old.txt src/main.py; do echo "$f" >"$f"; done
echo '{"name": "x", "version": "1.0.0"}' >package.json
git config --global user.name a; git config --global user.email a@b.example
for d in . /out/repo; do (cd $d && git init -q && git add -A && git commit -q --allow-empty -m first); done
`

// sample returns the attack as a script with what it needs.
func (a attack) sample() sample {
	names := strings.NewReplacer("@OUT@", "/out", "@M@", "/out/marker")
	return sample{ID: a.ID, Script: names.Replace(a.Command), Before: surroundings + names.Replace(a.Setup)}
}
