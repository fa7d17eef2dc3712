package loop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// prose is text of that many bytes without repetition.
func prose(n int, seed uint64) string {
	words := strings.Fields("the agent reads a file and finds that nothing in it explains why tests fail when run twice so it looks again elsewhere")
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[rnd.IntN(len(words))])
		b.WriteByte(" \n"[rnd.IntN(2)])
	}
	return b.String()[:n]
}

func rows(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i, i*7%1000)
	}
	return b.String()
}

func TestRepeatedBlockIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		text   string
		wrong  bool
	}{
		"block":            {"five equal blocks of 200 characters", strings.Repeat(prose(200, 1), 12), true},
		"after prose":      {"what stood before does not matter", prose(50_000, 2) + strings.Repeat(prose(300, 1), 9), true},
		"short sentence":   {"a short sentence makes up long blocks", prose(3000, 3) + strings.Repeat("I will try again. ", 140), true},
		"long block":       {"the longest block that is looked for", strings.Repeat(prose(blockMax, 4), 6), true},
		"with a rule":      {"a block may end in a rule", strings.Repeat(prose(300, 5)+strings.Repeat("-", 130)+"\n", 30), true},
		"wide characters":  {"characters count, not bytes", strings.Repeat("我再试一次,也许这次会成功。", 90), true},
		"four times":       {"four blocks are no loop", prose(5000, 6) + strings.Repeat(prose(1500, 7), 4) + prose(5000, 8), false},
		"prose":            {"ordinary text", prose(200_000, 9), false},
		"dashes":           {"a long rule", strings.Repeat("-", 20_000), false},
		"blanks":           {"a run of blanks and line ends", strings.Repeat("    \n", 5_000), false},
		"zeros":            {"a list of zeros", strings.Repeat("0, ", 8_000), false},
		"table":            {"rows that differ in a number", rows(200_000, "| row %d | the same words in every row of it | %d |\n"), false},
		"array":            {"objects that differ in a number", rows(200_000, `{"id": %d, "name": "somebody", "tags": ["a", "b"], "score": %d},`+"\n"), false},
		"too long a block": {"longer blocks are not looked for", strings.Repeat(prose(blockMax+500, 10), 6), false},
		"few, wide":        {"200 bytes are not 200 characters", prose(2000, 11) + strings.Repeat("我再试一次,也许这次会成功。", 15) + prose(2000, 12), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 7, 100, checkMin, len(c.text)} {
				if got := repeats(c.text, size); got != c.wrong {
					t.Errorf("%s: in pieces of %d bytes the answer is %v", c.reason, size, got)
				}
			}
		})
	}
}

func repeats(text string, size int) bool {
	r := newRepeat()
	for i := 0; i < len(text); i += size {
		if r.write(text[i:min(i+size, len(text))]) {
			return true
		}
	}
	return false
}

// Whatever the block and what stands before it: six more of it are enough, once
// there is room for a look.
func TestRepeatedBlocksOfEverySizeAreSeen(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		size := blockMin + rnd.IntN(blockMax-blockMin)
		block := prose(size, rnd.Uint64())
		text := prose(rnd.IntN(30_000), rnd.Uint64()) + strings.Repeat(block, blockTimes+1+checkMax/size)
		if !repeats(text, 1+rnd.IntN(300)) {
			t.Fatalf("blocks of %d bytes behind %d others are not seen", size, len(text)-6*size)
		}
	}
}

// What it says is held against the definition: some block stands five times at
// an end of the text.
func FuzzRepeat(f *testing.F) {
	f.Add([]byte("abc defg"), 40, 12)
	f.Add([]byte(prose(250, 1)), 1, 7)
	f.Add([]byte("-"), 5000, 3)
	f.Fuzz(func(t *testing.T, unit []byte, times, noise int) {
		if len(unit) == 0 || len(unit) > 5000 || times < 0 || times > 200 || noise < 0 || noise > 5000 {
			t.Skip("out of the range of the test")
		}
		text := prose(noise, 3) + strings.Repeat(string(unit), times) + prose(noise/2, 4)
		if len(text) > 100_000 {
			t.Skip("out of the range of the test")
		}
		r := newRepeat()
		for i := range len(text) {
			if r.write(text[i : i+1]) {
				if !slowlyStuck([]byte(text[:i+1])) {
					t.Fatalf("an alarm after %d bytes without a repeated block", i+1)
				}
				return
			}
		}
	})
}

func slowlyStuck(text []byte) bool {
	n := len(text)
	for p := blockMin; p <= blockMax && p*blockTimes <= n; p++ {
		same := true
		for k := 1; k < blockTimes && same; k++ {
			same = bytes.Equal(text[n-p:], text[n-(k+1)*p:n-k*p])
		}
		if same {
			return true
		}
	}
	return false
}

func TestStuckAnswerIsStopped(t *testing.T) {
	block := prose(400, 1)
	a := say("never complete")
	for range 100 {
		a.emit = append(a.emit, message.Delta{Kind: message.DeltaText, Text: block})
	}
	told := 0
	w := newWorld(t, a)
	end := w.start(t.Context())
	for _, e := range w.types() {
		if e == "text.delta" {
			told++
		}
	}
	if end.Reason != reason.LoopDetected || !strings.Contains(end.Hint, "spec.parameters") {
		t.Errorf("ended %s (%s; %s)", end.Reason, end.Message, end.Hint)
	}
	if told > 20 {
		t.Errorf("%d pieces were told: the stream is stopped", told)
	}
}

func BenchmarkRepeat(b *testing.B) {
	for name, text := range map[string]string{
		"prose": prose(200_000, 1),
		"table": rows(200_000, "| row %d | the same words in every row of it | %d |\n"),
		"rule":  strings.Repeat("-", 200_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				repeats(text, 100)
			}
		})
	}
}
