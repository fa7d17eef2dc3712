// Package collect takes what a cassette keeps out of the journal of a run, without its secrets.
package collect

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/secret"
)

// Files are the files that the model was shown: those of the prompts, and those that
// tools returned, each once.
func Files(v *view.Run) []message.File {
	var files []message.File
	seen := map[string]bool{}
	add := func(f message.File) {
		if !seen[f.URL] {
			seen[f.URL] = true
			files = append(files, f)
		}
	}
	for _, m := range v.Messages {
		for _, p := range m.Parts {
			if p.File != nil {
				add(*p.File)
			}
		}
		for _, c := range m.Calls() {
			if c.Result == nil {
				continue
			}
			for _, f := range c.Result.Attachments {
				add(f)
			}
		}
	}
	return files
}

// Blobs are the contents of files of the journal in a folder. A file with a secret cannot be
// kept: without the secret it would be another file.
func Blobs(dir string, files []message.File, redactor *secret.Redactor) (blobs []cassette.Blob, err error) {
	for _, f := range files {
		b := cassette.Blob{ID: strings.TrimPrefix(f.URL, "blob:")}
		if b.Content, err = journal.ReadBlob(dir, b.ID); err != nil {
			return nil, err
		}
		if !bytes.Equal(redactor.Bytes(b.Content), b.Content) {
			return nil, fmt.Errorf("the attached file %s holds a secret", redactor.String(f.Filename))
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

// Events are the events of the journal in a folder, without secrets and without what was
// done with the run after its end.
func Events(ctx context.Context, dir string, redactor *secret.Redactor) (events []event.Event, err error) {
	for e, err := range journal.Read(ctx, dir, 0) {
		if err == nil {
			e, err = cleaned(e, redactor)
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	for len(events) > 0 { // what a person did when the run had ended
		if !byPerson(events[len(events)-1].Data) {
			break
		}
		events = events[:len(events)-1]
	}
	return events, nil
}

// byPerson reports whether an event is of what a person did with a run at the end of its
// journal: a patch is recorded there by a revert only.
func byPerson(p event.Payload) bool {
	switch d := p.(type) {
	case event.WorkspaceApplied:
		return d.By != ""
	case event.PublishItem, event.RunReverted, event.WorkspacePatch:
		return true
	}
	return false
}

// cleaned takes secrets out of an event. The journal has done so with all
// events but those that were emitted before the run knew its secrets.
func cleaned(e event.Event, redactor *secret.Redactor) (event.Event, error) {
	line, err := e.AppendJSON(nil)
	if err != nil {
		return e, err
	}
	clean := redactor.JSON(line)
	if bytes.Equal(line, clean) {
		return e, nil
	}
	var out event.Event
	if err := out.UnmarshalJSON(clean); err != nil {
		return e, fmt.Errorf("event %d without its secrets: %w", e.Seq, err)
	}
	return out, nil
}
