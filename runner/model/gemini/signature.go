package gemini

import (
	"encoding/json"
	"unicode/utf8"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// metadata is what the API wants back with a call: the very part it came on has
// to carry it again.
type metadata struct {
	Signature string `json:"thoughtSignature"`
}

// signatures is what the API requires back with a text. The text is one in the journal and
// came in parts, so each signature records which bytes it belongs to.
type signatures struct {
	Signatures []signed `json:"signatures"`
}

type signed struct {
	Signature string `json:"thoughtSignature"`
	From      int    `json:"from"`
	To        int    `json:"to"`
}

func signatureOf(raw json.RawMessage) string {
	var m metadata
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return ""
	}
	return m.Signature
}

func encodeSignature(s []byte) json.RawMessage {
	if len(s) == 0 {
		return nil
	}
	return append(jsonpass.AppendString([]byte(`{"thoughtSignature":`), string(s)), '}')
}

// encodeSignatures returns the metadata of a text, nil for one without a
// signature.
func encodeSignatures(all []signed) json.RawMessage {
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(signatures{all})
	if err != nil {
		return nil // cannot happen: these are texts and numbers
	}
	return raw
}

// piece of a text that was one part, or of several that carried no signature.
type piece struct{ text, signature string }

// cut returns a text in the parts that its signatures belong to. If they do not fit the
// text, which may have been changed since, it is one unsigned piece.
func cut(text string, raw json.RawMessage) []piece {
	var s signatures
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		s.Signatures = nil
	}
	var pieces []piece
	at := 0
	for _, p := range s.Signatures {
		if p.Signature == "" || p.From < at || p.To < p.From || p.To > len(text) || !boundary(text, p.From) || !boundary(text, p.To) {
			at, pieces = 0, nil
			break
		}
		if p.From > at {
			pieces = append(pieces, piece{text: text[at:p.From]})
		}
		pieces = append(pieces, piece{text[p.From:p.To], p.Signature})
		at = p.To
	}
	if at < len(text) {
		pieces = append(pieces, piece{text: text[at:]})
	}
	return pieces
}

// boundary reports whether a character begins at a byte.
func boundary(text string, at int) bool { return at == len(text) || utf8.RuneStart(text[at]) }
