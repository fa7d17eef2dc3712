package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
)

// TestForgedRecordingsTakeNoHours is about recordings whose every line makes all
// lines before it be looked at: each of these took minutes.
func TestForgedRecordingsTakeNoHours(t *testing.T) {
	const many = 200_000
	forged := func(begin []event.Event, more func(i int) event.Event) []Entry {
		c := small()
		for i := range many {
			begin = append(begin, more(i))
		}
		c.Events = story(begin...)
		return c.Life()
	}
	start := []event.Event{at("m", "", event.RunStarted{}), at("", "", event.StepStart{Step: 1}), at("m", "", event.ModelRequest{Step: 1}), at("", "", event.RunResumed{Attempt: 2})}
	call := func(i int) string { return fmt.Sprint("c", i) }
	if life := forged(start[:3:3], func(i int) event.Event { return at("m", call(i), event.ToolCall{Attempt: 2}) }); len(life) != many+3 {
		t.Errorf("calls that ran again: %d entries", len(life))
	}
	if life := forged(start[:4:4], func(i int) event.Event { return at("x", call(i/2), event.ToolInputEnd{}) }); len(life) < many/2 || len(life) > many/2+3 {
		t.Errorf("calls that are judged again: %d entries", len(life))
	}
	life := forged([]event.Event{start[0], start[1], start[2], at("m", "c", event.ToolInputStart{Tool: "bash"})}, func(i int) event.Event {
		if i == many-1 {
			return at("m", "", event.ModelResponse{})
		}
		return at("m", "c", event.ToolInputDelta{Text: strings.Repeat("x", 20)})
	})
	if all := Requests(life); len(all) != 1 || len(all[0].Output.Calls) != 1 || len(all[0].Output.Calls[0].Args) != 20*(many-1) {
		t.Errorf("arguments in small pieces: %d requests", len(all))
	}
}

func TestWhatNoRunDoesIsDamage(t *testing.T) {
	for name, more := range map[string]func(i int) event.Event{
		"interruptions": func(int) event.Event { return at("", "", event.RunResumed{}) },
		"calls":         func(i int) event.Event { return at("m", fmt.Sprint("c", i), event.ToolInputStart{Tool: "bash"}) },
	} {
		c := small()
		events := []event.Event{at("m", "", event.RunStarted{})}
		for i := range maxCalls + 1 {
			events = append(events, more(i))
		}
		c.Events = story(events...)
		var file bytes.Buffer
		if err := c.Write(&file); err != nil {
			t.Fatal(err)
		}
		_, err := Read("x", &file)
		if damage, ok := errors.AsType[*DamageError](err); !ok || !strings.Contains(damage.Problem, "no run is like that") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
