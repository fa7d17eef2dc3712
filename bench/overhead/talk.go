package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// talk is a conversation as the model leads it: one command per turn, then a
// final answer.
type talk struct {
	turns int
	// chunks of text come before each command, and hold so many bytes in all.
	chunks, text int
	// flood is what the first command prints besides, in bytes.
	flood int
}

// command is what the model asks for in a turn. The last one also counts the
// lines with what the shell has built in, which proves that all of them ran
// wherever the workspace is.
func (t talk) command(turn int) string {
	c := fmt.Sprintf("echo %d >> turns.txt", turn)
	if turn == 1 && t.flood > 0 {
		c += fmt.Sprintf("; head -c %d /dev/zero | tr '\\0' x", t.flood)
	}
	if turn == t.turns {
		c += "; n=0; while read -r _; do n=$((n+1)); done < turns.txt; echo lines=$n"
	}
	return c
}

func callID(turn int) string { return "call_" + strconv.Itoa(turn) + "_bench" }

// words are a chunk of the text of a turn; no two are alike.
func (t talk) words(turn, chunk int) string {
	text := fmt.Sprintf("%d.%d ", turn, chunk)
	return text + strings.Repeat("x", max(0, t.text/t.chunks-len(text)-1)) + "\n"
}

// lastWords prove that the text of a turn came back to the end.
func (t talk) lastWords(turn int) string { return fmt.Sprintf("%d.%d xx", turn, t.chunks-1) }

// answer is what the model says in a turn, as server-sent events: arguments in
// fragments, a usage chunk, an end mark. Each piece is sent by itself.
func (t talk) answer(turn int) [][]byte {
	var pieces [][]byte
	var b bytes.Buffer
	chunk := func(choices, usage string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":%s,"usage":%s}`+"\n\n", turn, choices, usage)
	}
	delta := func(d, finish string) {
		chunk(fmt.Sprintf(`[{"index":0,"delta":%s,"finish_reason":%s}]`, d, finish), "null")
	}
	if turn > t.turns {
		delta(`{"role":"assistant","content":""}`, "null")
		delta(`{"content":"All commands ran."}`, "null")
		delta(`{}`, `"stop"`)
	} else {
		for i := range t.chunks {
			delta(fmt.Sprintf(`{"content":%q}`, t.words(turn, i)), "null")
			pieces = append(pieces, bytes.Clone(b.Bytes()))
			b.Reset()
		}
		text := strconv.Quote(fmt.Sprintf(`{"command":%q,"description":"Append a line"}`, t.command(turn)))
		text = text[1 : len(text)-1]
		// Cut in the middle, but never inside an escape.
		cut := len(text) / 2
		for text[cut-1] == '\\' {
			cut--
		}
		delta(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"bash","arguments":""}}]}`, callID(turn)), "null")
		delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, text[:cut]), "null")
		delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`, text[cut:]), "null")
		delta(`{}`, `"tool_calls"`)
	}
	chunk("[]", fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d}`, 100*turn, 100*turn+20))
	b.WriteString("data: [DONE]\n\n")
	return append(pieces, b.Bytes())
}

// problem says what is wrong with the request of a turn: it must carry the
// result of the last command and all that was said.
func (t talk) problem(turn int, body []byte) string {
	switch {
	case !bytes.Contains(body, []byte(`"stream":true`)) && !bytes.Contains(body, []byte(`"stream": true`)):
		return fmt.Sprintf("request %d asks for no stream", turn)
	case turn > t.turns+1:
		return fmt.Sprintf("request %d after the final answer", turn)
	case bytes.Count(body, []byte(`"role":"tool"`)) != turn-1:
		// Counted, not looked up: a program may name the calls itself.
		return fmt.Sprintf("request %d does not carry the results of %d calls", turn, turn-1)
	case turn == t.turns+1 && !bytes.Contains(body, []byte("lines="+strconv.Itoa(t.turns))):
		return fmt.Sprintf("not every command ran: no lines=%d in the last result", t.turns)
	case t.chunks > 0 && turn > 1 && (len(body) < (turn-1)*t.text || !bytes.Contains(body, []byte(t.lastWords(turn-1)))):
		return fmt.Sprintf("request %d does not carry the text of %d answers", turn, turn-1)
	}
	return ""
}
