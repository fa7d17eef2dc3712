package gemini

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// maxSignatures bounds the signatures on one answer, in bytes.
const maxSignatures = 2 << 20

// errForeign is an event without any of the API's members.
var errForeign = errors.New("it holds nothing that this API sends")

// answer gathers an answer of streamGenerateContent.
type answer struct {
	*httpapi.Gather
	// texts and thoughts are the signatures on the text and on the reasoning.
	texts, thoughts []signed
	signatures      int // bytes of all
	// finish is the word for the end, why the sentence beside it.
	finish, why string
	blocked     string
	tally       httpapi.Tally

	cur jsonpass.Cursor
	got part
}

// part is one part of a chunk.
type part struct {
	call, thought, hasText, other   bool
	text, signature, id, name, args []byte
}

func newAnswer(tell func(message.Delta)) httpapi.Answer {
	return &answer{Gather: httpapi.NewGather(tell)}
}

// Event adds the chunk of one event. Gateways end the stream with a word that
// the API itself does not say.
func (a *answer) Event(name string, data []byte) error {
	if name == "error" {
		return httpapi.Refused(model.ParseFault(data))
	}
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return nil
	}
	a.cur.Reset(data)
	err := a.chunk()
	a.cur.End()
	return a.wrong(err)
}

// Whole adds an answer that was not streamed: one chunk, or a list of them, which is what
// the API sends to requests for no events.
func (a *answer) Whole(data []byte) error {
	a.cur.Reset(data)
	var err error
	if a.cur.Next() == '[' {
		a.cur.Array(func() {
			if bad := a.chunk(); err == nil {
				err = bad
			}
		})
	} else {
		err = a.chunk()
	}
	a.cur.End()
	return a.wrong(err)
}

// wrong is what was wrong with the bytes, or else with what they say.
func (a *answer) wrong(err error) error {
	if bad := errors.Join(a.cur.Err(), a.Err()); bad != nil {
		return bad
	}
	return err
}

// Complete implements httpapi.Answer.
func (a *answer) Complete() bool { return a.finish != "" }

// Over implements httpapi.Answer. No event is known to be the last one: the end
// of the stream is.
func (a *answer) Over() bool { return false }

// chunk reads a chunk, and returns the error in it, if any.
func (a *answer) chunk() error {
	c := &a.cur
	var refused []byte
	members, known := 0, 0
	c.Object(func(key []byte) {
		members++
		known++
		switch string(key) {
		case "candidates":
			a.candidates()
		case "usageMetadata":
			a.readUsage()
		case "promptFeedback":
			a.feedback()
		case "error":
			refused = c.Raw()
		case "modelVersion", "responseId", "createTime", "modelStatus":
			c.Skip()
		default:
			known--
			c.Skip()
		}
	})
	switch {
	case c.Err() != nil:
		return c.Err()
	case len(refused) > 0 && string(refused) != "null":
		return httpapi.Refused(model.ParseFault(slices.Concat([]byte(`{"error":`), refused, []byte{'}'})))
	case a.blocked != "":
		return filtered(a.blocked)
	case members > 0 && known == 0:
		return errForeign
	}
	return endings.Failure(a.finish, a.why)
}

// filtered is the error for a conversation that the provider does not answer. Its
// strictness is for people to choose where it is a matter of safety.
func filtered(why string) error {
	e := &model.Error{Kind: model.Filtered, Class: "filter", Err: fmt.Errorf("the provider refuses the conversation: %s", model.Quote([]byte(why)))}
	if why == "SAFETY" {
		e.Hint = "spec.parameters.extra.safetySettings says how strict the provider is"
	}
	return e
}

// candidates reads the one candidate that was asked for.
func (a *answer) candidates() {
	c := &a.cur
	first := true
	c.Array(func() {
		if !first {
			c.Skip()
			return
		}
		first = false
		c.Object(func(key []byte) {
			switch string(key) {
			case "content":
				a.content()
			case "finishReason":
				a.finished(c.Text())
			case "finishMessage":
				a.why = string(c.Text())
			default:
				c.Skip()
			}
		})
	})
	if c.Err() == nil && endings.Finish(a.finish).Whole() {
		a.withoutArguments()
	}
}

// withoutArguments gives the calls of a whole answer that came without arguments
// an empty object: the API leaves it out. In any other answer they may have been
// cut off.
func (a *answer) withoutArguments() {
	for at, c := range a.Calls {
		if len(c.Args) == 0 {
			a.Args(at, []byte("{}"))
		}
	}
}

// finished keeps the first word for the end that is one.
func (a *answer) finished(word []byte) {
	if a.finish == "" && string(word) != "FINISH_REASON_UNSPECIFIED" {
		a.finish = string(word)
	}
}

func (a *answer) feedback() {
	c := &a.cur
	c.Object(func(key []byte) {
		if string(key) != "blockReason" {
			c.Skip()
			return
		}
		if why := c.Text(); string(why) != "BLOCK_REASON_UNSPECIFIED" {
			a.blocked = string(why)
		}
	})
}

func (a *answer) content() {
	c := &a.cur
	c.Object(func(key []byte) {
		if string(key) == "parts" {
			c.Array(a.part)
			return
		}
		c.Skip()
	})
}

// part reads a part. Its kind may come after its content.
func (a *answer) part() {
	c, p := &a.cur, &a.got
	*p = part{text: p.text[:0], signature: p.signature[:0], id: p.id[:0], name: p.name[:0], args: p.args[:0]}
	c.Object(func(key []byte) {
		switch string(key) {
		case "text":
			p.hasText = true
			p.text = append(p.text, c.Text()...)
		case "thought":
			p.thought = string(c.Raw()) == "true"
		case "thoughtSignature":
			p.signature = append(p.signature, c.Text()...)
		case "functionCall":
			a.call()
		default:
			p.other = true
			c.Skip()
		}
	})
	if c.Err() == nil {
		a.add()
	}
}

func (a *answer) call() {
	c, p := &a.cur, &a.got
	if c.Null() {
		return
	}
	p.call = true
	c.Object(func(key []byte) {
		switch string(key) {
		case "id":
			p.id = append(p.id, c.Text()...)
		case "name":
			p.name = append(p.name, c.Text()...)
		case "args":
			if c.Null() {
				return
			}
			if c.Next() != '{' {
				c.Fail("functionCall.args: want an object")
				return
			}
			p.args = append(p.args, c.Raw()...)
		case "partialArgs":
			// Sent only on request. The arguments in args are incomplete then.
			c.Fail("functionCall.partialArgs: the arguments of a call come in pieces")
		default:
			c.Skip()
		}
	})
}

// add adds the part to the answer. An unknown kind is skipped; a signature alone comes
// with an empty text.
func (a *answer) add() {
	p := &a.got
	if a.signatures += len(p.signature); a.signatures > maxSignatures {
		a.cur.Fail("the signatures of the answer are longer than %d bytes", maxSignatures)
		return
	}
	if len(p.signature) > 0 || p.other {
		a.Piece()
	}
	switch {
	case p.call:
		at := a.Begin()
		if at < 0 {
			return
		}
		c := a.Calls[at]
		c.ID, c.Tool, c.Metadata = string(p.id), string(p.name), encodeSignature(p.signature)
		a.Args(at, p.args)
	case p.thought:
		from := a.ReasoningSize()
		a.Reasoning(p.text)
		a.thoughts = sign(a.thoughts, p.signature, from, a.ReasoningSize())
	case p.hasText || !p.other:
		from := a.TextSize()
		a.Text(p.text)
		a.texts = sign(a.texts, p.signature, from, a.TextSize())
	}
}

func sign(all []signed, signature []byte, from, to int) []signed {
	if len(signature) == 0 {
		return all
	}
	return append(all, signed{string(signature), from, to})
}

// readUsage keeps the last report: the counts go up from chunk to chunk.
func (a *answer) readUsage() {
	c := &a.cur
	if c.Null() {
		return
	}
	a.tally = httpapi.Tally{Reported: true}
	var u struct{ prompt, cached, tools, candidates, thoughts int64 }
	count := func(into *int64) { a.tally.Count(c, into) }
	c.Object(func(key []byte) {
		switch string(key) {
		case "promptTokenCount":
			count(&u.prompt)
		case "cachedContentTokenCount":
			count(&u.cached)
		case "toolUsePromptTokenCount":
			count(&u.tools)
		case "candidatesTokenCount":
			count(&u.candidates)
		case "thoughtsTokenCount":
			count(&u.thoughts)
		default:
			c.Skip()
		}
	})
	a.tally.Usage = message.Usage{
		Input: max(0, u.prompt+u.tools-u.cached), Output: u.candidates + u.thoughts, Reasoning: u.thoughts, CacheRead: u.cached,
	}
}

// Output returns the complete answer.
func (a *answer) Output() *message.Output {
	out := endings.Output(a.Gather, a.finish, a.why)
	out.TextMetadata, out.ReasoningMetadata = encodeSignatures(a.texts), encodeSignatures(a.thoughts)
	a.tally.Into(out)
	return out
}

// endings are the finish reasons of the API.
var endings = httpapi.Endings{
	"STOP":       {Finish: message.FinishStop},
	"MAX_TOKENS": {Finish: message.FinishLength},

	"SAFETY":                   {Finish: message.FinishContentFilter},
	"RECITATION":               {Finish: message.FinishContentFilter},
	"LANGUAGE":                 {Finish: message.FinishContentFilter},
	"BLOCKLIST":                {Finish: message.FinishContentFilter},
	"PROHIBITED_CONTENT":       {Finish: message.FinishContentFilter},
	"SPII":                     {Finish: message.FinishContentFilter},
	"MODEL_ARMOR":              {Finish: message.FinishContentFilter},
	"IMAGE_SAFETY":             {Finish: message.FinishContentFilter},
	"IMAGE_PROHIBITED_CONTENT": {Finish: message.FinishContentFilter},
	"IMAGE_RECITATION":         {Finish: message.FinishContentFilter},

	// What the model wrote as a call could not be read as one, or no call was
	// possible: another attempt may do better.
	"MALFORMED_FUNCTION_CALL": {Failed: model.Malformed},
	"UNEXPECTED_TOOL_CALL":    {Failed: model.Malformed},
}
