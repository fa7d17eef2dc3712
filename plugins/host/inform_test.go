package host

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestWhatAProgramSaysOfItselfIsChecked(t *testing.T) {
	var got []string
	r := newReception(CallRequest{Inform: func(title string, metadata json.RawMessage) { got = append(got, title+string(metadata)) }}, nil)
	for _, p := range []*toolpb.Progress{
		{Title: "a"},
		{MetadataJson: []byte(` {"n": 1} `)},
		{Title: "b", MetadataJson: []byte(`[1]`)},
		{MetadataJson: []byte(`"x"`)},
		{MetadataJson: []byte(`{"n":`)},
		{MetadataJson: []byte(`{"x":"` + strings.Repeat("x", toolpb.MaxProgressMetadata) + `"}`)},
		{Text: "output"},
	} {
		r.progressed(p)
	}
	r.informs.close()
	if want := []string{"a", `{"n":1}`, "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSayingIsBoundedAndEndsWithTheNewest(t *testing.T) {
	size, last := 0, ""
	r := newReception(CallRequest{Inform: func(_ string, m json.RawMessage) { size, last = size+len(m), string(m) }}, nil)
	for range 1000 {
		r.progressed(&toolpb.Progress{MetadataJson: []byte(`{"x":"` + strings.Repeat("x", 10_000) + `"}`)})
	}
	r.progressed(&toolpb.Progress{MetadataJson: []byte(`{"last":true}`)})
	r.informs.close()
	if size > progressBurst+progressRate*60 || last != `{"last":true}` {
		t.Errorf("%d bytes, the last is %.40s", size, last)
	}
}

func TestPartsThatAreNoneAreToldApart(t *testing.T) {
	sent := []*toolpb.Part{{Type: "t/a", DataJson: []byte(`1`)}, {Type: "t/b", DataJson: []byte(`{`)}, {Type: "t/c", DataJson: make([]byte, toolpb.MaxPart+1)}}
	for range 2 * toolpb.MaxParts {
		sent = append(sent, &toolpb.Part{Type: strings.Repeat("t", 1000), DataJson: []byte(`{}`)})
	}
	got := parts(sent)
	if len(got) != toolpb.MaxParts || string(got[0].Data) != "1" || got[1].Data != nil || got[2].Data != nil || len(got[3].Type) > maxPartType+4 {
		t.Errorf("got %d parts: %.300v", len(got), got)
	}
}
