package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Command is a prompt that its author has written down in a file, with places for arguments.
type Command struct {
	// Description is for people; Agent and Model are those that carry it out, "" for the
	// ones of the run.
	Description string `json:"description"`
	Agent       string `json:"agent"`
	Model       string `json:"model"`

	body string
}

// maxCommand bounds the file of a command, as a prompt from a file is bounded.
const maxCommand = 1 << 20

// ParseCommand reads the text of a command: fields between two lines "---", which may be
// left out, and the prompt.
func ParseCommand(text []byte) (*Command, error) {
	switch {
	case len(text) > maxCommand:
		return nil, errors.New("it is longer than 1 MiB")
	case !utf8.Valid(text):
		return nil, errors.New("it is not UTF-8 text")
	}
	c := &Command{}
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if rest, ok := bytes.CutPrefix(text, []byte("---\n")); ok {
		head, body, ended := bytes.Cut(append([]byte("\n"), rest...), []byte("\n---\n"))
		if !ended {
			return nil, errors.New("its head has no end: a line ---")
		}
		if err := yaml.UnmarshalStrict(head, c); err != nil {
			return nil, fmt.Errorf("its head has description, agent and model: %w", err)
		}
		text = body
	}
	if c.body = strings.TrimSpace(string(text)); c.body == "" {
		return nil, errors.New("it holds no prompt")
	}
	return c, nil
}

// allArguments is the place of all arguments, separated by spaces.
const allArguments = "$ARGUMENTS"

// place is something in the text of a command that is replaced.
type place struct {
	// text as it is written, number of an argument; 0: all of them, or the input.
	text   string
	number int
	input  string
}

// placeAt reads a place at the beginning of a text.
func placeAt(text string) (p place, ok bool) {
	if strings.HasPrefix(text, open) {
		end := strings.IndexByte(text, '}')
		if end < 0 {
			return place{text: text}, true
		}
		return place{text: text[:end+1], input: text[len(open):end]}, true
	}
	if rest, found := strings.CutPrefix(text, allArguments); found {
		return place{text: allArguments}, rest == "" || !wordy(rest[0])
	}
	n := 1
	for n < len(text) && n < 4 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	number, err := strconv.Atoi(text[min(1, len(text)):n])
	return place{text: text[:n], number: number}, err == nil && text[1] != '0' && number < 100
}

func wordy(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// Fill returns the prompt. The text of the command is read once: arguments and inputs are
// data, and nothing in them is replaced. The highest number takes the rest of the arguments;
// without a place for them they are added behind the text.
func (c *Command) Fill(args []string, inputs map[string]json.RawMessage) (string, error) {
	highest, taken := 0, false
	_, err := c.each(func(p place) (string, error) {
		highest, taken = max(highest, p.number), taken || p.input == ""
		return "", nil
	})
	if err != nil {
		return "", err
	}
	text, err := c.each(func(p place) (string, error) {
		switch {
		case p.input != "":
			value, ok := inputs[p.input]
			if !ok {
				return "", fmt.Errorf("input %q is not given%s", p.input, known(inputs))
			}
			return plain(value), nil
		case p.number == 0:
			return strings.Join(args, " "), nil
		case p.number > len(args):
			return "", fmt.Errorf("argument %d is missing: it has a place for %d, and %d are given", p.number, highest, len(args))
		case p.number == highest:
			return strings.Join(args[p.number-1:], " "), nil
		}
		return args[p.number-1], nil
	})
	if err == nil && !taken && len(args) > 0 {
		text += "\n\nArguments: " + strings.Join(args, " ")
	}
	return text, err
}

// each replaces every place of the text. "$$" before a place leaves the place as it is
// written.
func (c *Command) each(value func(place) (string, error)) (string, error) {
	var b strings.Builder
	text := c.body
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:i])
		text = text[i:]
		if len(text) > 1 && text[1] == '$' {
			if p, ok := placeAt(text[1:]); ok {
				b.WriteString(p.text)
				text = text[1+len(p.text):]
				continue
			}
		}
		p, ok := placeAt(text)
		if !ok {
			b.WriteByte('$')
			text = text[1:]
			continue
		}
		if strings.HasPrefix(p.text, open) && !strings.HasSuffix(p.text, "}") {
			return "", fmt.Errorf("%q has no closing brace", cut(p.text))
		}
		filled, err := value(p)
		if err != nil {
			return "", err
		}
		b.WriteString(filled)
		text = text[len(p.text):]
	}
}
