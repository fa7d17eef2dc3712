package runner

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

const payTool = `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: pay}
spec:
  description: Pay an amount.
  parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
  risk: R2
  effects: [Money]
  source: {exec: {command: [./pay.sh]}}
`

// paying is a run that pays; what was paid stands in a file beside the manifests.
func paying(t *testing.T, onAsk, steps string) (p place, paid func() string) {
	t.Helper()
	p = newPlace(t, agent("approvals: {onAsk: "+onAsk+", timeout: 10m}\ntools: [{name: pay}]\npolicyRefs: [{name: p}]", steps, askAll, payTool), nil)
	book := filepath.Join(t.TempDir(), "book")
	script := filepath.Join(p.manifests, "pay.sh")
	write(t, script, "#!/bin/sh\nread args\necho \"$args\" >> "+book+"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	return p, func() string {
		b, err := os.ReadFile(book)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
}

func TestApprovalOfOneAmountPaysNoOther(t *testing.T) {
	p, paid := paying(t, "Suspend", `
- calls: [{tool: pay, args: {amount: 100}}]
- calls: [{tool: pay, args: {amount: 999}}]
- say: done
`)
	out := p.run(t)
	p.answer(t, "@latest", nil)
	given := leftIn(t, out.Journal)
	if out = p.goOn(t); paid() != `{"amount":100}` || out.Run.PendingApprovals[0] != "call_2_1" {
		t.Fatalf("paid %q, waiting %v", paid(), out.Run.PendingApprovals)
	}
	// What was said of 100 is left for 999: as it was, and made out for the call.
	inbox := approval.NewInbox(out.Journal, time.Now)
	if err := inbox.Put(given); err != nil {
		t.Fatal(err)
	}
	forged := given
	forged.ID, forged.Call = "ans-forged", "call_2_1"
	if err := inbox.Put(forged); err != nil {
		t.Fatal(err)
	}
	out = p.goOn(t)
	if out.Run.Phase != view.Suspended || paid() != `{"amount":100}` {
		t.Fatalf("got %s, paid %q", out.Run.Phase, paid())
	}
	if warned := strings.Join(out.Run.Warnings, "\n"); !strings.Contains(warned, "ans-forged.json") || !strings.Contains(warned, "is not what was approved") {
		t.Errorf("warnings: %s", warned)
	}
	// Nor does a file of hashes approve another amount, or the same one twice.
	hash := out.Run.Call("call_1_1").Decision.Hash
	list := filepath.Join(t.TempDir(), "approved")
	write(t, list, hash+"\n")
	manifests := filepath.Join(p.manifests, "all.yaml")
	b, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	first := "- calls: [{tool: pay, args: {amount: 100}}]"
	text := strings.Replace(string(b), first, "- calls: [{tool: pay, args: {amount: 100}}, {tool: pay, args: {amount: 101}}]", 1)
	text = strings.Replace(text, "- calls: [{tool: pay, args: {amount: 999}}]", "- calls: [{tool: pay, args: {amount: 999}}, {tool: pay, args: {amount: 100}}]", 1)
	write(t, manifests, strings.Replace(text, "onAsk: Suspend", "onAsk: Deny", 1))
	p.run(t, func(o *RunOptions) { o.Approve = list })
	if paid() != "{\"amount\":100}\n{\"amount\":100}" {
		t.Errorf("paid %q", paid())
	}
}

// leftIn reads the one answer that lies in an inbox.
func leftIn(t *testing.T, run string) (r approval.Request) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(run, "inbox", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What the manifests say by now does not count for a run that has begun, and a
// run with other policies takes no answer that was given to this one.
func TestPolicyThatChangesInBetween(t *testing.T) {
	const steps = "- calls: [{tool: pay, args: {amount: 100}}]\n- say: done\n"
	p, paid := paying(t, "Suspend", steps)
	first := p.run(t)
	p.answer(t, "@latest", nil)
	given := leftIn(t, first.Journal)

	manifests := filepath.Join(p.manifests, "all.yaml")
	b, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	write(t, manifests, strings.Replace(string(b), "{name: ask, action: ask}", "{name: stricter, action: ask, when: \"tool.name == 'pay'\"}", 1))
	second := p.run(t)
	forged := given
	forged.Run, forged.ID = second.Run.ID, "ans-forged"
	if err := approval.NewInbox(second.Journal, time.Now).Put(forged); err != nil {
		t.Fatal(err)
	}
	if out := p.goOn(t); out.Run.Phase != view.Suspended || paid() != "" {
		t.Errorf("the other run: %s, paid %q", out.Run.Phase, paid())
	}
	out, err := Resume(t.Context(), ResumeOptions{Ref: first.Run.ID, State: p.state, Approve: "never", Version: "test"})
	if err != nil || out.Run.Phase != view.Succeeded || paid() != `{"amount":100}` {
		t.Errorf("got %+v, %v, paid %q", out, err, paid())
	}
}

func TestOfTwoApproversOneIsHeard(t *testing.T) {
	p, paid := paying(t, "Wait", "- calls: [{tool: pay, args: {amount: 100}}]\n- say: done\n")
	run, outcome := p.untilAsked(t)
	const people = 6
	var heard [people]*runs.Answered
	var failed [people]error
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			o := runs.AnswerOptions{Ref: run, State: p.state, Approve: i%2 == 0, By: "person" + string(rune('0'+i))}
			if !o.Approve {
				o.Reason = "too much"
			}
			heard[i], failed[i] = runs.Answer(t.Context(), o)
		})
	}
	all.Wait()
	out := <-outcome
	taken, by := 0, ""
	for i := range people {
		if failed[i] == nil && heard[i].Taken {
			taken++
			by = heard[i].By
		} else if failed[i] == nil || !strings.Contains(failed[i].Error(), "was answered already") && !strings.Contains(failed[i].Error(), "has ended already") && !strings.Contains(failed[i].Error(), "waits for") {
			t.Errorf("person %d is told %+v, %v", i, heard[i], failed[i])
		}
	}
	a := out.Run.Answer("call_1_1")
	if taken != 1 || a.By != by {
		t.Errorf("%d were heard, the last %q; the journal says %q", taken, by, a.By)
	}
	if approved := a.State == message.Approved; approved != (paid() == `{"amount":100}`) {
		t.Errorf("%s, and paid %q", a.State, paid())
	}
	decided := 0
	for e, err := range journal.Read(t.Context(), out.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type() == event.TypeApprovalDecided {
			decided++
		}
	}
	if decided != 1 {
		t.Errorf("%d decisions stand in the journal", decided)
	}
}
