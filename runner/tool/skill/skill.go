// Package skill reads the know-how that a folder holds: a SKILL.md with a name, a description and a text for the model.
package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

// MaxSize bounds the file: a model has to read it.
const MaxSize = 256 << 10

// maxDescription is what a list of skills can hold of each.
const maxDescription = 1024

// Skill is what a folder holds.
type Skill struct {
	// Name and Description as the file gives them; either may be "".
	Name, Description string
	// Text for the model: the file without its head.
	Text string
	// Digest of the whole file: sha256:...
	Digest string
}

// Read reads the skill of a folder. Its errors describe the folder or the file
// in it; the caller adds the name of the folder.
func Read(dir string) (*Skill, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such folder")
	case err != nil:
		return nil, cause(err)
	case !info.IsDir():
		return nil, errors.New("it is not a folder")
	}
	text, err := readFile(filepath.Join(dir, File))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return s, nil
}

// readFile reads a regular file of an allowed size. It does not block on other
// kinds of files, for example a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(text) > MaxSize:
		return nil, fmt.Errorf("it has more than %d KiB", MaxSize>>10)
	}
	return text, nil
}

// cause is an error of a file without the path, which is reported once.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// fence is the line above and below the head of a file.
const fence = "---"

// Parse reads the text of a SKILL.md. Unknown fields of its head are ignored.
func Parse(text []byte) (*Skill, error) {
	if !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
		return nil, errors.New("it is not a text in UTF-8")
	}
	sum := sha256.Sum256(text)
	s := &Skill{Digest: "sha256:" + hex.EncodeToString(sum[:])}
	head, body, err := split(text)
	if err != nil {
		return nil, err
	}
	var fields struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if err := yaml.Unmarshal(head, &fields); err != nil {
		return nil, fmt.Errorf("its head is no YAML with a name and a description: %w", err)
	}
	if len(fields.Description) > maxDescription {
		return nil, fmt.Errorf("its description has more than %d bytes", maxDescription)
	}
	s.Name, s.Description, s.Text = fields.Name, fields.Description, string(bytes.TrimSpace(body))
	if s.Text == "" {
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
