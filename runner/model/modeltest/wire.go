package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"agentctl.dev/agentctl/api/message"
)

// Wire is a wire format as the API that owns it speaks it. There are four:
// Chat, Responses, Anthropic and Gemini.
type Wire interface {
	// Name is chat, responses, anthropic or gemini.
	Name() string
	// Base is the path a base URL ends with: /v1, or nothing where the provider
	// adds the version.
	Base() string
	// Key is the key that a request carries, "" without one.
	Key(h http.Header) string
	// Route returns why the API does not accept a request at this address or with these
	// headers, and its status.
	Route(r Request) (status int, err error)
	// Check returns why the API would refuse the body of a request. It is stricter than
	// any one of the servers that imitate the API.
	Check(body []byte) error
	// Stream is the body of an answer, in the events that the API sends.
	Stream(a Answer) []byte
	// Begun is the beginning of a stream that has said a text and no more.
	Begun(text string) string
	// Fault is the body of a refusal. The code is the API's own word for what
	// happened; "" is the word that goes with the status.
	Fault(status int, message, code string) string
	// InStream is the event that a stream ends with when the API gives up.
	InStream(status int, message, code string) string

	// traits are the differences of the format that the suite has to know.
	traits() traits
}

// Wires returns every wire format.
func Wires() []Wire { return []Wire{Chat, Responses, Anthropic, Gemini} }

// traits are what the suite has to know of a wire format.
type traits struct {
	// address is a part of the hint about a wrong base URL.
	address string
	// whole: arguments are sent as one JSON object. They can neither be split nor broken,
	// and come back with another spelling.
	whole bool
	// signed: reasoning comes with data that must be sent back with it.
	signed bool
	// shown: reasoning is sent back as it was shown.
	shown bool
	// thoughts are answers that are signed in more than one place.
	thoughts func() map[string]string
	// writes: usage counts the tokens written to a cache.
	writes bool
	// silent is how a request forbids calls without leaving the tools out, "" when
	// it has to leave them out.
	silent string
	// failed is how a request marks the results of two calls that failed.
	failed []string
	// stop is the word for the end of a complete answer.
	stop string
	// finishes are the words a stream may end with, and what they mean.
	finishes map[string]message.Finish
	// unknown are events that a later version of the API might send, and that every reader
	// must skip.
	unknown []string
	// ping is an event that only keeps the connection open.
	ping string
	// quirks are answers of servers that imitate the API, and of its own odd days.
	quirks func() map[string]quirk
	// asks is the body of a refusal that asks to wait for two seconds, "" when only
	// headers do.
	asks string
	// faults are the ways to fail that only this wire format has, by name.
	faults func() map[string]fault
}

// events writes a stream of server-sent events.
type events struct{ bytes.Buffer }

// add adds an event; an event without a name has no line for it.
func (e *events) add(name string, data any) {
	if name != "" {
		e.WriteString("event: ")
		e.WriteString(name)
		e.WriteString("\n")
	}
	e.WriteString("data: ")
	e.Write(encode(data))
	e.WriteString("\n\n")
}

// object is a JSON object.
type object = map[string]any

// encode writes plain values as JSON.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode plain values: %v", err)) // cannot happen
	}
	return raw
}

// event is one event without a name.
func event(v any) string { return "data: " + string(encode(v)) + "\n\n" }

// named is one event with a name.
func named(name string, v any) string { return "event: " + name + "\n" + event(v) }

// signature is what sign returns, in a stream or in a request.
var signature = regexp.MustCompile(`c2ln[A-Za-z0-9+/]{40,}=*`)

// genuine reports whether a signature is where it belongs. A foreign one cannot be
// verified: a stored conversation has some.
func genuine(got, want string) bool {
	return got == want || got != "" && !signature.MatchString(got)
}

// sign replaces the signature of an API for the thought of its model: Check recognises by
// it that the thought came back as it was sent.
func sign(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\n" + text))
	return base64.StdEncoding.EncodeToString(append([]byte("sig"), sum[:]...))
}
