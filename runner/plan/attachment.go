package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/policy"
)

const (
	// maxAttached bounds the files of one run, together: providers take requests of
	// about 32 MB, and base64 makes a third more of them.
	maxAttached = 20 << 20
	// maxAttachments is more than any model looks at.
	maxAttachments = 32
)

// attachable are the files that providers take beside a text.
var attachable = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// Attachment is a file that is sent to the model with the prompt.
type Attachment struct {
	message.File
	Content []byte
}

// attach reads the files that the command line names.
func (p *Plan) attach(paths []string) error {
	if len(paths) > maxAttachments {
		return reason.Usagef("%d files are attached, at most %d", len(paths), maxAttachments)
	}
	size := 0
	for _, path := range paths {
		a, err := readAttachment(p.Workspace.Source, path)
		if err != nil {
			return reason.Usagef("attach %s: %w", path, err)
		}
		if size += len(a.Content); size > maxAttached {
			return reason.Usagef("attach %s: the files are larger than %d MB together", path, maxAttached>>20)
		}
		p.Attached = append(p.Attached, a)
	}
	return nil
}

// readAttachment reads a file that a person names. In the workspace no link is
// followed out of it: what lies there may be somebody else's.
func readAttachment(workspace, path string) (Attachment, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Attachment{}, err
	}
	f, err := openAttachment(workspace, abs)
	if err != nil {
		return Attachment{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Attachment{}, errors.Join(err, errors.New("it is not a regular file"))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxAttached+1))
	if err != nil {
		return Attachment{}, err
	}
	mime := http.DetectContentType(content)
	if !slices.Contains(attachable, mime) {
		mime, _, _ = strings.Cut(mime, ";")
		return Attachment{}, fmt.Errorf("it is %s; images (PNG, JPEG, GIF, WebP) and PDF can be attached, a text goes into the prompt: -p @FILE", mime)
	}
	file := message.File{Mime: mime, Filename: filepath.Base(path), Source: &message.FileSource{Type: "file", Path: abs}}
	file.Origin = &message.Origin{Kind: message.OriginFile, Name: abs}
	return Attachment{file, content}, nil
}

// openAttachment opens a file without waiting for the writer of a pipe.
func openAttachment(workspace, abs string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	rel, err := filepath.Rel(workspace, abs)
	if workspace == "" || err != nil || !filepath.IsLocal(rel) {
		return os.OpenFile(abs, flags, 0)
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(rel, flags, 0)
}

// AdmitAttached refuses a file that a rule denies to read: what the model must not
// read it is not sent either.
func (p *Plan) AdmitAttached(ctx context.Context) error {
	if len(p.Attached) == 0 || !p.judged() {
		return nil
	}
	engine := policy.NewEngine(p.Rules, p.StandingContext())
	for _, a := range p.Attached {
		if err := engine.Forbids(ctx, a.Source.Path); err != nil {
			return reason.Usagef("attach %s: %w", a.Filename, err).WithHint("see the rule with agentctl auth can-i call read -f FILE --args " + readArgs(a.Source.Path))
		}
	}
	return nil
}

// readArgs are the arguments of a read, quoted for a shell.
func readArgs(path string) string {
	b, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return "JSON"
	}
	return "'" + strings.ReplaceAll(string(b), "'", `'\''`) + "'"
}
