package runapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestAQuestionIsAnsweredOrRefused(t *testing.T) {
	for body, want := range map[string]struct {
		code            int
		answer, message string
	}{
		`{"decision": "approved", "answer": "2"}`:                    {http.StatusOK, "blue", ""},
		`{"decision": "approved", "answer": "red"}`:                  {http.StatusOK, "red", ""},
		`{"decision": "rejected", "reason": "later"}`:                {http.StatusOK, "", ""},
		`{"decision": "approved"}`:                                   {http.StatusUnprocessableEntity, "", "the call asks a question"},
		`{"decision": "approved", "answer": "green"}`:                {http.StatusUnprocessableEntity, "", "one of the options"},
		`{"decision": "approved", "answer": "1", "scope": "Always"}`: {http.StatusUnprocessableEntity, "", "cannot be approved for always"},
		`{"decision": "rejected", "answer": "1"}`:                    {http.StatusUnprocessableEntity, "", "only an approved question"},
		`{"decision": "rejected", "endRun": true}`:                   {http.StatusUnprocessableEntity, "", "cannot end the run"},
	} {
		run, a := question()
		a.Spec.Question, a.Spec.Options, a.Spec.Always = "Which colour?", []string{"red", "blue"}, nil
		d := newDecider(t, run, a)
		w := d.post(body, "application/json")
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.message) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		got := d.status(t)
		if got.Answer != want.answer || (got.Decision != "") != (want.code == http.StatusOK) || got.Scope != "" {
			t.Errorf("%s: got %+v", body, got)
		}
	}
}

func TestACallThatAsksNoQuestionTakesNoAnswer(t *testing.T) {
	d := newDecider(t, first(question()), second(question()))
	if w := d.post(`{"decision": "approved", "answer": "yes"}`, "application/json"); w.Code != http.StatusUnprocessableEntity || d.status(t).Decision != "" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
