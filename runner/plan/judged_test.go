package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/admission"
)

func TestDocumentsAreJudgedOnceAndKeptApart(t *testing.T) {
	model := func(name, provider string) Document {
		return Document{Name: name, Text: fmt.Appendf(nil, `{"apiVersion":"agentctl.dev/v1alpha1","kind":"Model","metadata":{"name":"m"},"spec":{"provider":%q}}`, provider)}
	}
	j := &Judged{}
	judge := func(docs ...Document) string {
		found := j.Judge(t.Context(), docs, admission.Options{})
		_, _, want := AdmitDocuments(t.Context(), docs, admission.Options{})
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(found)); diff != "" {
			t.Errorf("not what an admission finds (-want +got):\n%s", diff)
		}
		if len(found) > 0 {
			found[0].Message = "changed by a caller"
		}
		return fmt.Sprint(want)
	}
	for range 2 { // the second time from what is kept
		if judge(model("a", "nope")) == judge(model("b", "nope")) {
			t.Error("the position names no document")
		}
		judge(model("a", "scripted"))
	}
	if len(j.found) != 3 {
		t.Errorf("%d sets of documents are kept, want 3", len(j.found))
	}
	// Where one part ends and the next begins belongs to the documents.
	if keyOf([]Document{{Name: "a", Text: []byte("bc")}}) == keyOf([]Document{{Name: "ab", Text: []byte("c")}}) {
		t.Error("two sets have one key")
	}
	for i := range mostJudged + 10 {
		j.keep(keyOf([]Document{{Name: fmt.Sprint(i)}}), nil)
	}
	if len(j.found) != mostJudged || len(j.order) != mostJudged {
		t.Errorf("%d and %d are kept, at most %d", len(j.found), len(j.order), mostJudged)
	}
}

func TestNothingIsKeptOfWhatLooksOutside(t *testing.T) {
	j := &Judged{}
	j.Judge(t.Context(), []Document{{Name: "a", Text: []byte("{}")}}, admission.Options{Programs: true})
	if len(j.found) != 0 {
		t.Error("findings about the programs of this host are kept")
	}
}
