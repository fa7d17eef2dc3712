package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"agentctl.dev/agentctl/api/audit"
)

// maxReceipt bounds a receipt that is read: one names every changed file.
const maxReceipt = 64 << 20

// encoding is what is signed: the pre-authentication encoding of DSSE v1, which binds the
// payload to its type.
func encoding(payloadType string, payload []byte) []byte {
	b := append([]byte("DSSEv1 "), strconv.Itoa(len(payloadType))...)
	b = append(append(b, ' '), payloadType...)
	b = append(append(b, ' '), strconv.Itoa(len(payload))...)
	return append(append(b, ' '), payload...)
}

// seal signs a statement.
func seal(ctx context.Context, s *audit.Statement, by Signer) ([]byte, error) {
	var payload bytes.Buffer
	enc := json.NewEncoder(&payload)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode the receipt: %w", err)
	}
	body := bytes.TrimSuffix(payload.Bytes(), []byte("\n"))
	text := encoding(audit.PayloadType, body)
	sig, err := by.Sign(ctx, text)
	if err != nil {
		return nil, err
	}
	// What a program has signed with, or whether it has at all, is known only by this.
	if !ed25519.Verify(by.Public(), text, sig) {
		return nil, errors.New("sign the receipt: the signature is not that of the public key")
	}
	out, err := json.Marshal(audit.Envelope{
		PayloadType: audit.PayloadType, Payload: body, Signatures: []audit.Signature{{KeyID: KeyID(by.Public()), Sig: sig}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the receipt: %w", err)
	}
	return append(out, '\n'), nil
}

// envelope is an envelope as it is read: base64 may be of either alphabet, as DSSE demands.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     string `json:"payload"`
	Signatures  []struct {
		Sig string `json:"sig"`
	} `json:"signatures"`
}

// maxSignatures bounds those of one envelope.
const maxSignatures = 64

// open returns the payload of an envelope that the key has signed. Nothing of the payload is
// looked at before. The error says what is wrong with the envelope.
func open(text []byte, key ed25519.PublicKey) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	var e envelope
	if err := dec.Decode(&e); err != nil {
		return nil, fmt.Errorf("it is not a DSSE envelope: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the envelope")
	}
	switch {
	case e.PayloadType != audit.PayloadType:
		return nil, fmt.Errorf("its payload has the type %q, that of a receipt is %q", brief(e.PayloadType), audit.PayloadType)
	case len(e.Signatures) == 0:
		return nil, errors.New("it has no signature")
	case len(e.Signatures) > maxSignatures:
		return nil, fmt.Errorf("it has more than %d signatures", maxSignatures)
	}
	payload, err := decode(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("its payload is not base64: %w", err)
	}
	signed := encoding(e.PayloadType, payload)
	for _, s := range e.Signatures {
		if sig, err := decode(s.Sig); err == nil && len(sig) == ed25519.SignatureSize && ed25519.Verify(key, signed, sig) {
			return payload, nil
		}
	}
	return nil, errors.New("no signature is that of the key: the receipt was changed, or another key has signed it")
}

func decode(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		return b, nil
	}
	if url, also := base64.URLEncoding.DecodeString(text); also == nil {
		return url, nil
	}
	return nil, err
}

// brief is the beginning of a foreign text.
func brief(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
