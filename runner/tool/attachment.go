package tool

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/safetext"
)

// Attachment is a file that a call returns besides its text.
type Attachment struct {
	// Name for people and for the model, such as shot.png; "" where there is none.
	Name string
	// Type that its program claims; only the content decides.
	Type    string
	Content []byte
}

// Bounds of what one call attaches. Providers take requests of about 32 MB, and base64
// makes a third more of them.
const (
	maxAttachments  = 8
	maxAttachment   = 10 << 20
	maxAttached     = 20 << 20
	maxAttachedName = 200
)

// attach keeps the attachments of a call as blobs of the run, and returns a line for
// each that is refused:
//
//	more than 8, above 10 MiB, above 20 MiB together    refused
//	content that is neither an image nor a PDF           refused, whatever it is called
//	a secret of the run in the content                   refused: it cannot be taken out
func (r *Registry) attach(result *message.ToolResult, attached []Attachment) (refused []string, err error) {
	total := 0
	for i, a := range attached {
		name := r.attachedName(a.Name)
		refuse := func(format string, args ...any) {
			refused = append(refused, fmt.Sprintf("[%s was not attached: %s]", name, fmt.Sprintf(format, args...)))
		}
		if i == maxAttachments {
			refuse("a call attaches at most %d files, and this one has %d", maxAttachments, len(attached))
			break
		}
		mime, wrong := MediaType(a.Content)
		switch {
		case len(a.Content) > maxAttachment:
			refuse("it has %d bytes, at most %d can be attached", len(a.Content), maxAttachment)
			continue
		case total+len(a.Content) > maxAttached:
			refuse("with it the files would have more than %d bytes together", maxAttached)
			continue
		case wrong != nil:
			refuse("%v", wrong)
			continue
		case !bytes.Equal(r.Redactor.Bytes(a.Content), a.Content):
			refuse("it holds a secret of the run")
			continue
		}
		total += len(a.Content)
		id, err := r.Blobs.PutBlob(a.Content)
		if err != nil {
			return nil, reason.New(reason.Internal, "keep the attachment %s: %w", name, err)
		}
		result.Attachments = append(result.Attachments, message.File{
			Mime: mime, Filename: name, URL: BlobPrefix + id, Size: int64(len(a.Content)),
		})
	}
	return refused, nil
}

// attachedName is the last part of a name that a program gave, without secrets and
// characters that are not visible.
func (r *Registry) attachedName(name string) string {
	name = path.Base(r.Redactor.String(name))
	if name == "." || name == "/" {
		return "file"
	}
	name = safetext.Visible(name, 0)
	return strings.ToValidUTF8(name[:min(len(name), maxAttachedName)], "")
}
