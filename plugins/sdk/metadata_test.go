package sdk

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func TestMetadataIsAnObjectAndTheNewestIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := serve(t, &toolpb.CallRequest{}, func(_ context.Context, call *Call, _ struct{}) (*Result, error) {
			for _, dropped := range []any{nil, "text", 3, []int{1}, make(chan int), map[string]string{"x": strings.Repeat("x", toolpb.MaxProgressMetadata)}} {
				call.Metadata("", dropped)
			}
			for n := range 50 {
				call.Metadata("stage", map[string]int{"n": n})
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.events {
			if p := e.GetProgress(); p != nil {
				got = append(got, p.GetTitle()+string(p.GetMetadataJson()))
			}
		}
		if len(got) != 2 || got[0] != `stage{"n":0}` || got[1] != `stage{"n":49}` {
			t.Errorf("watchers see %q", got)
		}
	})
}

func TestPartsOfAResultAreBounded(t *testing.T) {
	large := strings.Repeat("x", toolpb.MaxPart)
	r, err := serve(t, &toolpb.CallRequest{}, func(context.Context, *Call, struct{}) (*Result, error) {
		res := &Result{Parts: []Part{{Type: "t/large", Data: large}, {Type: "t/none", Data: make(chan int)}}}
		for range 20 {
			res.Parts = append(res.Parts, Part{Type: "t/a", Data: large[:toolpb.MaxPart/2]})
		}
		return res, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	size, parts := 0, r.events[len(r.events)-1].GetResult().GetParts()
	for _, p := range parts {
		size += len(p.GetDataJson())
		if p.GetType() != "t/a" {
			t.Errorf("part %s was sent", p.GetType())
		}
	}
	if len(parts) == 0 || len(parts) > toolpb.MaxParts || size > toolpb.MaxAllParts {
		t.Errorf("%d parts of %d bytes", len(parts), size)
	}
}
