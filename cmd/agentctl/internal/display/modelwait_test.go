package display

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// drawn is what a screen shows; a timer writes to it while the test reads.
type drawn struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (d *drawn) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.Write(p)
}

func (d *drawn) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.String()
}

func (d *drawn) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b.Reset()
}

// ended stops the timer of a renderer that has shown enough.
func ended(r *textRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait.stop()
	r.stopTicks()
}

// asking is the beginning of a run that has asked its model.
func asking(r Renderer, model string) (tell func(event.Event)) {
	seq := int64(0)
	tell = func(e event.Event) {
		seq++
		e.Seq, e.Run, e.Time = seq, "r1", time.Now()
		r.Event(e)
	}
	tell(event.Event{Message: "u", Part: "u", Data: event.RunStarted{Agent: "a", Model: message.ModelRef{Name: model}}})
	tell(event.Event{Message: "m", Data: event.StepStart{Step: 1}})
	tell(event.Event{Message: "m", Data: event.ModelRequest{Step: 1, Messages: 1}})
	return tell
}

func TestATerminalShowsThatAModelIsWaitedFor(t *testing.T) {
	for _, columns := range []int{40, 80, 200} {
		for _, color := range []bool{false, true} {
			t.Run(fmt.Sprint(columns, color), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var b drawn
					s := &Screen{w: &b, TTY: true, Live: true, Color: color, columns: func() int { return columns }}
					r := newTextRun(&Screen{w: &drawn{}, TTY: true}, s, RunOptions{})
					tell := asking(r, "a-model-with-a-long-name-that-does-not-fit-on-a-narrow-terminal")
					time.Sleep(999 * time.Millisecond)
					synctest.Wait()
					if b.String() != "" && strings.Contains(b.String(), "waiting") {
						t.Errorf("a short wait is shown: %q", b.String())
					}
					b.Reset()
					time.Sleep(65 * time.Second)
					synctest.Wait()
					lines := strings.Split(strings.TrimPrefix(b.String(), "\r\x1b[K"), "\r\x1b[K")
					if len(lines) != 65 {
						t.Errorf("drawn %d times in 65 s", len(lines))
					}
					for i, line := range lines {
						if w := ansi.StringWidth(line); w >= columns || strings.Contains(line, "\n") {
							t.Errorf("%d cells: %q", w, line)
						}
						if want := "waiting " + (time.Duration(i+1) * time.Second).String() + " "; !strings.Contains(line, want) {
							t.Errorf("got %q, want %q", line, want)
						}
						if !color && strings.Contains(line, "\x1b") {
							t.Errorf("coloured: %q", line)
						}
					}
					b.Reset()
					tell(event.Event{Message: "m", Data: event.ModelRetry{Retry: message.Retry{Attempt: 1, Attempts: 5, Class: "503"}}})
					time.Sleep(2 * time.Second)
					synctest.Wait()
					if columns > 80 && !strings.Contains(b.String(), "attempt 1 of 5 failed") {
						t.Errorf("the retry is not shown: %q", b.String())
					}
					b.Reset()
					tell(event.Event{Message: "m", Part: "p", Data: event.TextDelta{Text: "Hello"}})
					time.Sleep(time.Minute)
					synctest.Wait()
					if got := b.String(); got != "\r\x1b[KHello" {
						t.Errorf("the line is not taken back: %q", got)
					}
					ended(r)
				})
			})
		}
	}
}

func TestWithoutATerminalALineComesEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b drawn
		r := newTextRun(&Screen{w: &drawn{}}, &Screen{w: &b}, RunOptions{})
		tell := asking(r, "fast")
		b.Reset()
		time.Sleep(29 * time.Second)
		tell(event.Event{Message: "m", Part: "p", Data: event.TextDelta{Text: "it is not shown here"}})
		synctest.Wait()
		if b.String() != "" {
			t.Errorf("too early: %q", b.String())
		}
		time.Sleep(62 * time.Second)
		synctest.Wait()
		if got, want := b.String(), "waiting 30s for model fast · step 1 · 30s\nwaiting 1m0s for model fast · step 1 · 1m00s\nwaiting 1m30s for model fast · step 1 · 1m30s\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		tell(event.Event{Message: "m", Data: event.ModelResponse{Model: message.ModelRef{Name: "fast"}}})
		b.Reset()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if b.String() != "" {
			t.Errorf("after the answer: %q", b.String())
		}
	})
}

func TestProgramsAreNotToldThatAModelIsWaitedFor(t *testing.T) {
	for _, format := range []string{FormatJSON, FormatJSONL} {
		synctest.Test(t, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			asking(NewRun(format, &Screen{w: &stdout}, &Screen{w: &stderr}, RunOptions{}), "fast")
			before := stdout.Len()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if stdout.Len() != before || stderr.Len() > 0 || format == FormatJSON && before > 0 {
				t.Errorf("%s: stdout %q, stderr %q", format, stdout.String(), stderr.String())
			}
		})
	}
}

// TestPartsAreKeptApart lets the pieces of reasoning and text come in every
// mixture: the answer is never split, and nothing is lost or shown twice.
func TestPartsAreKeptApart(t *testing.T) {
	const answer = "The answer, which is one line."
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it chooses an order
		queues := [][]event.Event{{}, {}, {}}
		for i, text := range []string{"first I think about it ", answer, "and then once more "} {
			part := fmt.Sprint("p", i)
			var start event.Payload = event.ReasoningStart{}
			if i == 1 {
				start = event.TextStart{}
			}
			queues[i] = append(queues[i], event.Event{Message: "m", Part: part, Data: start})
			whole := text
			for len(text) > 0 {
				n := min(1+rnd.IntN(6), len(text))
				var d event.Payload = event.ReasoningDelta{Text: text[:n]}
				if i == 1 {
					d = event.TextDelta{Text: text[:n]}
				}
				queues[i] = append(queues[i], event.Event{Message: "m", Part: part, Data: d})
				text = text[n:]
			}
			var end event.Payload = event.ReasoningEnd{Text: whole}
			if i == 1 {
				end = event.TextEnd{Text: answer}
			}
			queues[i] = append(queues[i], event.Event{Message: "m", Part: part, Data: end})
		}
		synctest.Test(t, func(t *testing.T) {
			var b drawn
			r := newTextRun(&Screen{w: &drawn{}, TTY: true}, &Screen{w: &b, TTY: true, Live: true}, RunOptions{})
			tell := asking(r, "fast")
			b.Reset()
			for len(queues[0])+len(queues[1])+len(queues[2]) > 0 {
				i := rnd.IntN(3)
				if len(queues[i]) == 0 {
					continue
				}
				tell(queues[i][0])
				queues[i] = queues[i][1:]
				time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
			}
			r.mu.Lock()
			r.stream.stop()
			r.mu.Unlock()
			ended(r)
			got := strings.ReplaceAll(b.String(), "\r\x1b[K", "")
			if strings.Count(got, answer+"\n") != 1 {
				t.Fatalf("seed %d: the answer is split: %q", seed, got)
			}
			rest := strings.ReplaceAll(strings.Replace(got, answer+"\n", "", 1), "\n", "")
			for _, part := range []string{"first I think about it ", "and then once more "} {
				if len(rest) != len("first I think about it and then once more ") {
					t.Fatalf("seed %d: %q of %q is lost or shown twice: %q", seed, part, rest, got)
				}
			}
		})
	}
}

// A call that is written for long is seen, also behind a text; so is the wait for
// another attempt after a text.
func TestATerminalShowsThatACallIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b drawn
		r := newTextRun(&Screen{w: &drawn{}, TTY: true}, &Screen{w: &b, TTY: true, Live: true}, RunOptions{})
		tell := asking(r, "fast")
		tell(event.Event{Message: "m", Part: "t", Data: event.TextStart{}})
		tell(event.Event{Message: "m", Part: "t", Data: event.TextDelta{Text: "I write it:"}})
		tell(event.Event{Message: "m", Part: "c", Call: "c1", Data: event.ToolInputStart{Tool: "write"}})
		b.Reset()
		for range 3 {
			tell(event.Event{Message: "m", Part: "c", Call: "c1", Data: event.ToolInputDelta{Text: strings.Repeat("x", 1000)}})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if got, want := b.String(), "\n  waiting 1s for a call of write (1000 B) of model fast"; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := b.String(), "\r\x1b[K  waiting 3s for a call of write (2.9 KiB) of model fast · step 1 · 3s"; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		tell(event.Event{Message: "m", Data: event.ModelRetry{Retry: message.Retry{Attempt: 1, Attempts: 3, Class: "503", WaitMillis: 9000}}})
		b.Reset()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := b.String(), "  waiting 5s for model fast · attempt 1 of 3 failed · step 1 · 5s"; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		tell(event.Event{Message: "m", Part: "t2", Data: event.TextDelta{Text: "again"}})
		tell(event.Event{Message: "m", Data: event.ModelRetry{Retry: message.Retry{Attempt: 2, Attempts: 3, Class: "503", WaitMillis: 9000}}})
		b.Reset()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got, want := b.String(), "  waiting 3s for model fast · attempt 2 of 3 failed · step 1 · 8s"; !strings.HasSuffix(got, want) {
			t.Errorf("after a text that came to nothing: got %q, want %q", got, want)
		}
		ended(r)
	})
}

// Who comes later sees since when the model is waited for.
func TestAWaitCountsFromItsRequest(t *testing.T) {
	for replay, want := range map[bool]string{false: "waiting 1m1s for", true: "waiting 1s for"} {
		synctest.Test(t, func(t *testing.T) {
			var b drawn
			r := newTextRun(&Screen{w: &drawn{}, TTY: true}, &Screen{w: &b, TTY: true, Live: true}, RunOptions{Past: begun(t), Replay: replay})
			r.Event(event.Event{Seq: 2, Run: "r", Message: "m", Time: time.Now(), Data: event.StepStart{Step: 1}})
			asked := event.Event{Seq: 3, Run: "r", Message: "m", Time: time.Now(), Data: event.ModelRequest{Step: 1}}
			time.Sleep(time.Minute)
			r.Event(asked)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := b.String(); !strings.Contains(got, want) {
				t.Errorf("replay %v: got %q, want %q", replay, got, want)
			}
			ended(r)
		})
	}
}
