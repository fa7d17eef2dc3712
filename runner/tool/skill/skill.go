// Package skill reads the know-how that a folder holds: a SKILL.md with a name, a description and a text for the model,
// and the files beside it. The format is that of the Agent Skills specification.
package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

// MaxSize bounds the file: a model has to read it.
const MaxSize = 256 << 10

// maxHead bounds its head: six fields.
const maxHead = 32 << 10

// Skill is what a SKILL.md holds.
type Skill struct {
	Head
	// Text for the model: the file without its head.
	Text string
	// Digest of the whole file: sha256:...
	Digest string
	// Problems are where the file differs from the specification, though it can be used.
	Problems []string
	head     []byte
}

// Departures are further differences, which are of no consequence here: another program
// may refuse the skill because of them.
func (s *Skill) Departures() []string { return departures(s.head) }

// Read reads the skill of a folder. Its errors describe the folder or the file
// in it; the caller adds the name of the folder.
func Read(dir string) (*Skill, error) {
	f, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Skill()
}

// fence is the line above and below the head of a file.
const fence = "---"

// Parse reads the text of a SKILL.md. What is merely not as the specification has it is
// among its Problems.
func Parse(text []byte) (*Skill, error) {
	if !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
		return nil, errors.New("it is not a text in UTF-8")
	}
	sum := sha256.Sum256(text)
	s := &Skill{Digest: "sha256:" + hex.EncodeToString(sum[:])}
	head, body, err := split(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	if len(head) > maxHead {
		return nil, fmt.Errorf("its head has more than %d KiB", maxHead>>10)
	}
	if s.Head, s.Problems, err = parseHead(head); err != nil {
		return nil, err
	}
	s.head = head
	if s.Text = string(bytes.TrimSpace(body)); s.Text == "" {
		return nil, errors.New("it holds no text")
	}
	return s, nil
}

// split cuts the head off. A file without one is all text.
func split(text []byte) (head, body []byte, err error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != fence {
		return nil, text, nil
	}
	for at := 0; at < len(rest); {
		line, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		if string(bytes.TrimRight(line, " \t\r")) == fence {
			return rest[:at], rest[min(at+len(line)+1, len(rest)):], nil
		}
		at += len(line) + 1
	}
	return nil, nil, errors.New("its head has no end: a line " + fence)
}
