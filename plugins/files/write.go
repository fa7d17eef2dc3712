package files

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

type writeIn struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (s *set) write(ctx context.Context, call *sdk.Call, in writeIn) (*sdk.Result, error) {
	w, rel, err := openFor(call, in.Path)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if rel == "." && !w.approved || strings.HasSuffix(in.Path, "/") {
		return nil, sdk.Errorf("%s names a folder: write makes files, and their folders with them", path.Clean(in.Path))
	}
	t, err := s.target(ctx, w, rel, true)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if t.info == nil || w.approved && len(t.old) == 0 { // the file was made for this call, or holds nothing to lose
		return s.finish(call, t, []byte(in.Content), "created "+t.rel)
	}
	if err := t.known(s, call.Run, "write"); err != nil {
		return nil, err
	}
	content, kept := inStyle(in.Content, t.old)
	what := "wrote " + t.rel
	if bytes.Equal(content, t.old) {
		what = "left " + t.rel + " as it was"
	}
	return s.finish(call, t, content, what+kept)
}

// inStyle gives new content the byte order mark and the line ends of the old, and returns
// a description of what it kept.
func inStyle(content string, old []byte) (styled []byte, kept string) {
	var what []string
	body, marked := bytes.CutPrefix(old, bom)
	if lineEnd(body) == "\r\n" && !strings.Contains(content, "\r\n") {
		content = withEnds(content, "\r\n")
		what = append(what, "CRLF line ends")
	}
	if marked && !strings.HasPrefix(content, string(bom)) {
		content = string(bom) + content
		what = append(what, "the byte order mark")
	}
	if len(what) > 0 {
		kept = fmt.Sprintf(" (kept %s)", strings.Join(what, " and "))
	}
	return []byte(content), kept
}
