package secret

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestALearnedValueIsRedactedFromThenOn(t *testing.T) {
	for name, r := range map[string]*Redactor{"beside others": NewLearner(NewValue("declared-secret")), "alone": NewLearner()} {
		const text = "a token-of-the-run b"
		stream, progress := r.NewStream(), r.NewProgress()
		if got := r.String(text); got != text {
			t.Errorf("%s: redacted before it is known: %s", name, got)
		}
		r.Learn(NewValue("token-of-the-run"))
		for what, got := range map[string]string{
			"String": r.String(text), "Bytes": string(r.Bytes([]byte(text))), "JSON": string(r.JSON([]byte(`"` + text + `"`))),
			"Cut": r.Cut("of-the-run b"), "Progress": progress.Show(text), "a new stream": r.NewStream().Push(text + " and more"),
			"a stream that began before": stream.Push(text + " and more"),
		} {
			if strings.Contains(got, "the-run") || !strings.Contains(got, "***") {
				t.Errorf("%s: %s: %s", name, what, got)
			}
		}
		if name == "beside others" && r.String("declared-secret") != "***" {
			t.Error("what was declared is not redacted any more")
		}
	}
}

func TestLearningIsBoundedAndConcurrent(t *testing.T) {
	r := NewLearner(NewValue("declared-secret"))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 40 {
				r.Learn(NewValue(fmt.Sprintf("token-%d-%d-end", i, n)))
				_ = r.String("token-0-0-end declared-secret")
			}
		})
	}
	all.Wait()
	if n := len(r.values); n != MaxLearned {
		t.Errorf("%d values are kept", n)
	}
	r.Learn(NewValue("the-newest-token"))
	if got := r.String("the-newest-token declared-secret"); got != "*** ***" {
		t.Error(got)
	}
}

func TestAKeptValueNeverGivesWay(t *testing.T) {
	r := NewLearner(NewValue("declared-secret"))
	r.Keep(NewValue("kept-value-of-the-run"))
	for n := range 2 * MaxLearned {
		r.Learn(NewValue(fmt.Sprintf("token-%d-end", n)))
	}
	if got := r.String("kept-value-of-the-run declared-secret token-63-end"); got != "*** *** ***" {
		t.Error(got)
	}
	var all []string
	for _, v := range r.Values() {
		all = append(all, v.Reveal())
	}
	if got := NewRedactor(r.Values()...).String("kept-value-of-the-run declared-secret"); got != "*** ***" || len(all) != 2+MaxLearned {
		t.Errorf("%s of %d values", got, len(all))
	}
	var none *Redactor
	if none.Values() != nil || len(NewRedactor(NewValue("declared-secret")).Values()) != 1 {
		t.Error("the values of a Redactor that learns nothing")
	}
}
