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
	// Route says why the API does not take a request at this address or with these
	// headers, and with which status it says so.
	Route(r Request) (status int, err error)
	// Check says why the API would refuse the body of a request. It is stricter
	// than any one of the servers that imitate the API.
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

	// traits tell the suite where the formats differ.
	traits() traits
}

// Wires returns every wire format.
func Wires() []Wire { return []Wire{Chat, Responses, Anthropic, Gemini} }

// traits are what the suite has to know of a wire format.
type traits struct {
	// address is what a hint about a wrong base URL says.
	address string
	// whole says that arguments are sent as one JSON object. They can neither be
	// split nor broken, and come back with another spelling.
	whole bool
	// signed says that reasoning comes with something that must go back with it.
	signed bool
	// shown says that reasoning goes back as it was shown.
	shown bool
	// thoughts are answers that are signed in more than one place.
	thoughts func() map[string]string
	// writes says that usage counts what was written to a cache.
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
	// unknown are events that a later version of the API might send: nobody knows
	// them, and everybody passes over them.
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

// event is one event that has no name.
func event(v any) string { return "data: " + string(encode(v)) + "\n\n" }

// named is one event with a name.
func named(name string, v any) string { return "event: " + name + "\n" + event(v) }

// signature is what sign returns, in a stream or in a request.
var signature = regexp.MustCompile(`c2ln[A-Za-z0-9+/]{40,}=*`)

// genuine says whether a signature stands where it belongs. One of somebody else
// cannot be verified: a stored conversation has some.
func genuine(got, want string) bool {
	return got == want || got != "" && !signature.MatchString(got)
}

// sign stands for the signature an API puts on what its model thought: Check
// knows by it that the thought came back as it was sent.
func sign(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\n" + text))
	return base64.StdEncoding.EncodeToString(append([]byte("sig"), sum[:]...))
}
