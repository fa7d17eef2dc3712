package item

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// marker begins the hidden line by which an item is found again. An item must not have one
// of its own: it could be taken for another.
const marker = "<!-- agentctl:"

// maxTitle bounds the title of a pull request, in characters.
const maxTitle = 200

// Check returns what is wrong with an item of an entry, "" if nothing is.
func Check(p *v1alpha1.Publication, it *message.Publication) string {
	if wrong := fields(p, it); wrong != "" {
		return wrong
	}
	if size := len(it.Body) + len(it.Data); size > int(p.MaxBytes) {
		return fmt.Sprintf("it has %d bytes, and %s takes at most %d", size, p.Name, p.MaxBytes)
	}
	if n := utf8.RuneCountInString(it.Title); n > maxTitle {
		return fmt.Sprintf("the title has %d characters, at most %d are possible", n, maxTitle)
	}
	if strings.ContainsAny(it.Title, "\n\r\u2028\u2029") {
		return "the title has several lines"
	}
	for name, text := range map[string]string{"title": it.Title, "body": it.Body, "data": string(it.Data)} {
		if strings.ContainsFunc(text, unseen) || !utf8.ValidString(text) {
			return "the " + name + " has control characters or invalid UTF-8"
		}
		if strings.Contains(strings.ToLower(text), marker) {
			return "the " + name + " contains " + marker + ", by which agentctl recognises what it has published"
		}
	}
	return ""
}

// unseen are control characters, and those that change the direction of text.
func unseen(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// fields compares what an item has with what its type takes.
func fields(p *v1alpha1.Publication, it *message.Publication) string {
	body := strings.TrimSpace(it.Body) != ""
	switch p.Type {
	case v1alpha1.PublishComment:
		if !body || it.Title != "" || len(it.Data) > 0 {
			return "a Comment has a body, and neither title nor data"
		}
	case v1alpha1.PublishPullRequest:
		if !body || strings.TrimSpace(it.Title) == "" || len(it.Data) > 0 {
			return "a PullRequest has a title and a body, and no data"
		}
	case v1alpha1.PublishWebhook:
		if it.Title != "" || !body && len(it.Data) == 0 {
			return "a Webhook has data, a body, or both, and no title"
		}
	default:
		return fmt.Sprintf("the type %q is not known", p.Type)
	}
	return ""
}

// Hash is over an item and its target: what a person approves. Change is the blob of what
// the run has changed, "" where the item does not contain it.
func Hash(it *message.Publication, t Target, change string) (string, error) {
	return digest(struct {
		Item   *message.Publication `json:"item"`
		Target Target               `json:"target"`
		Change string               `json:"change,omitempty"`
	}{it, t, change})
}

// Key identifies an item of a run for its target. Nobody can guess it before it is sent: it
// follows from the head of the run's journal.
func Key(run, head, call string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"publish", run, head, call}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Digest identifies all that a run would publish.
func Digest(run, head string, hashes []string) (string, error) {
	return digest(struct {
		Run   string   `json:"run"`
		Head  string   `json:"head"`
		Items []string `json:"items"`
	}{run, head, hashes})
}

func digest(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Marker is the hidden line of an item.
func Marker(key string) string { return marker + key + " -->" }

// Text is the body as it is published: nobody is notified by it, no command is in it, and it
// says who has published it.
func Text(body, agent, run, key string) string {
	return fmt.Sprintf("%s\n\n---\nPublished by agentctl for agent %s, run %s.\n%s\n", Inert(strings.TrimSpace(body)), agent, run, Marker(key))
}

// gap is a character without width. What stands behind it is neither a mention nor a command.
const gap = "\u200b"

// Inert returns a text in which no name is mentioned and no line begins with a command, as
// GitLab's quick actions and bots of forges read them. It looks the same.
func Inert(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if begin := len(line) - len(strings.TrimLeft(line, " \t\u00a0>*+-")); strings.HasPrefix(line[begin:], "/") {
			line = line[:begin] + gap + line[begin:]
		}
		lines[i] = strings.ReplaceAll(line, "@", "@"+gap)
	}
	return strings.Join(lines, "\n")
}

// Payload is what a Webhook is sent.
func Payload(it *message.Publication, agent, run, key string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Agent string          `json:"agent"`
		Run   string          `json:"run"`
		Name  string          `json:"name"`
		Key   string          `json:"key"`
		Body  string          `json:"body,omitempty"`
		Data  json.RawMessage `json:"data,omitempty"`
	}{agent, run, it.Name, key, it.Body, it.Data})
	return out.Bytes(), err
}

// Branch is the branch of a pull request.
func Branch(key string) string { return "agentctl/" + key }
