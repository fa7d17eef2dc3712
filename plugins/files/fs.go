package files

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// aboutFS is what the model reads of workspace_fs.
	aboutFS = "Read, write or append to a text file of the workspace in one step; gives size and time of the last change. With validate nothing is written unless the whole file is valid then."
	// maxFSRead is the largest file that is read: a result shows all of it.
	maxFSRead = 48 << 10
)

// fsSchema is written by hand for the words that op and validate may have.
const fsSchema = `{"type":"object","properties":{"op":{"type":"string","enum":["read","write","append"]},"path":{"type":"string"},` +
	`"content":{"type":"string"},"validate":{"type":"string","enum":["yaml","json","frontmatter"]}},"required":["op","path"],"additionalProperties":false}`

type fsIn struct {
	Op       string  `json:"op"`
	Path     string  `json:"path"`
	Content  *string `json:"content,omitempty"`
	Validate string  `json:"validate,omitempty"`
}

// fsData is the first line of a result, and its metadata.
type fsData struct {
	OK   bool   `json:"ok"`
	Op   string `json:"op"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Mtime is when the file was changed last, as RFC 3339 in UTC.
	Mtime string `json:"mtime,omitempty"`
	Hash  string `json:"hash,omitempty"`
	// Warnings are why a call was refused.
	Warnings []string `json:"warnings,omitempty"`
	Diff     string   `json:"diff,omitempty"`
	DiffCut  bool     `json:"diffCut,omitempty"`
}

// fs answers workspace_fs. What it refuses is a result with ok false and the reason, and
// the file is as it was.
func (s *set) fs(ctx context.Context, call *sdk.Call, in fsIn) (*sdk.Result, error) {
	data := fsData{Op: in.Op, Path: in.Path}
	content, err := s.fsDo(ctx, call, &in, &data)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		data.Warnings = []string{err.Error()}
	}
	data.OK = err == nil
	shown := data
	shown.Diff, shown.DiffCut, shown.Hash = "", false, ""
	line, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	res := &sdk.Result{Text: string(line), Title: data.Path, Metadata: data, Writes: data.OK && in.Op != "read", IsError: !data.OK}
	if data.OK && in.Op == "read" {
		res.Text += "\n" + content
	}
	return res, nil
}

// fsDo reads or changes the file, and notes what it is then.
func (s *set) fsDo(ctx context.Context, call *sdk.Call, in *fsIn, data *fsData) (string, error) {
	if (in.Content == nil) != (in.Op == "read") {
		return "", sdk.Errorf("write and append have a content, read has none")
	}
	w, rel, err := openFor(call, in.Path)
	if err != nil {
		return "", err
	}
	defer w.close()
	data.Path = w.show(rel)
	if in.Op == "read" {
		return s.fsRead(call, w, rel, in.Validate, data)
	}
	t, err := s.target(ctx, w, rel, true)
	if err != nil {
		return "", err
	}
	defer t.close()
	fresh := []byte(*in.Content)
	if in.Op == "append" {
		fresh = append(bytes.Clone(t.old), fresh...)
	}
	switch {
	case len(fresh) > maxEdit:
		return "", sdk.Errorf("%s would have %d bytes, more than the %d that can be written", t.rel, len(fresh), maxEdit)
	case binary(fresh[:min(len(fresh), sniffLen)]):
		return "", sdk.Errorf("the content is not text but %s: only text is written", binaryKind(fresh[:min(len(fresh), sniffLen)]))
	}
	if err := valid(in.Validate, fresh); err != nil {
		return "", sdk.Errorf("%s would not be valid: %w", t.rel, err)
	}
	sum, err := t.store(fresh)
	if err != nil {
		return "", err
	}
	s.seen.put(call.Run, t.real, sum)
	data.Size, data.Hash = int64(len(fresh)), sum.String()
	data.Diff, data.DiffCut = diff(t.rel, t.old, fresh)
	if info, err := t.dir.Lstat(t.name); err == nil {
		data.Mtime = stamp(info.ModTime())
	}
	return "", nil
}

// fsRead returns all of a text file.
func (s *set) fsRead(call *sdk.Call, w *workspace, rel, as string, data *fsData) (string, error) {
	f, info, err := w.open(rel)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data.Size, data.Mtime = info.Size(), stamp(info.ModTime())
	if info.Size() > maxFSRead {
		return "", sdk.Errorf("%s has %d bytes, more than the %d that are read at once: use read with offset", data.Path, info.Size(), maxFSRead)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFSRead+1))
	if err != nil {
		return "", sdk.Errorf("read %s: %w", data.Path, err)
	}
	head := content[:min(len(content), sniffLen)]
	if kind, ok := attachment(head); ok {
		return "", sdk.Errorf("%s is not text but %s", data.Path, kind)
	}
	if binary(head) {
		return "", sdk.Errorf("%s is not text but %s", data.Path, binaryKind(head))
	}
	if err := valid(as, content); err != nil {
		return "", sdk.Errorf("%s is not valid: %w", data.Path, err)
	}
	sum := sumOf(content)
	data.Hash = sum.String()
	s.remembered(call.Run, f, sum)
	return readable(content), nil
}

// remembered records that the run has read f with that content.
func (s *set) remembered(run string, f *os.File, sum digest) {
	if p, err := realFile(f); err == nil {
		s.seen.put(run, p, sum)
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// valid returns what is wrong with a text as what it is said to be.
func valid(as string, text []byte) error {
	text = bytes.TrimPrefix(text, bom)
	switch as {
	case "json":
		return validJSON(text)
	case "yaml":
		return validYAML(text)
	case "frontmatter":
		return validFrontMatter(text)
	}
	return nil
}

func validJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return sdk.Errorf("JSON: %w (byte %d)", err, d.InputOffset())
	}
	if _, err := d.Token(); err != io.EOF {
		return sdk.Errorf("JSON: there is more than one value")
	}
	return nil
}

// validFrontMatter checks the YAML between two lines of --- at the beginning of a text.
func validFrontMatter(text []byte) error {
	lines := strings.SplitAfter(string(text), "\n")
	if strings.TrimRight(lines[0], "\r\n") != "---" {
		return sdk.Errorf("front matter: the first line is not ---")
	}
	for i, line := range lines[1:] {
		if strings.TrimRight(line, "\r\n") == "---" {
			return validMapping([]byte(strings.Join(lines[1:i+1], "")))
		}
	}
	return sdk.Errorf("front matter: it is not closed by a line of ---")
}
