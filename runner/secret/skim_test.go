package secret

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestSkimmingReadsEveryCharacterOnce compares the ways to skim, which pass over bytes
// that are not UTF-8 without decoding them, with a decoder.
func TestSkimmingReadsEveryCharacterOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "B", " ", "\n", "é", "€", "😀", "\u200b", "\ufffd", "\xc2", "\xe2", "\xe2\x82", "\xf0\x9f", "\xf0\x9f\x98", "\x80", "\xbf", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5", "\xff", "\x7f"}
	for range 20_000 {
		var b []byte
		for range random.IntN(40) {
			b = append(b, pieces[random.IntN(len(pieces))]...)
		}
		var want []byte
		for at := 0; at < len(b); {
			r, n := utf8.DecodeRune(b[at:])
			if r != utf8.RuneError && !ignored(r) {
				want = utf8.AppendRune(want, r)
			}
			at += n
		}
		for _, json := range []bool{false, true} {
			s := skimmer{b: b, reading: reading{json: json}}
			if got := s.next(make([]byte, 0, len(b)+8), nil); !bytes.Equal(got, want) {
				t.Fatalf("%q is skimmed as %q, want %q", b, got, want)
			}
			s = skimmer{b: b, reading: reading{json: json}}
			var p places
			if got := s.next(make([]byte, 0, len(b)+8), &p); !bytes.Equal(got, want) || len(p.start) != len(want) {
				t.Fatalf("%q is skimmed with places as %q, want %q", b, got, want)
			}
		}
	}
}

// TestASecretBetweenBytesOfAnImageIsFound puts a value into binary data.
func TestASecretBetweenBytesOfAnImageIsFound(t *testing.T) {
	r := NewRedactor(NewValue(key))
	random := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		image := make([]byte, 100_000)
		for i := range image {
			image[i] = byte(random.UintN(256))
		}
		if !bytes.Equal(r.Bytes(image), image) {
			t.Fatal("data without a secret was redacted")
		}
		at := random.IntN(len(image) - 2*len(key))
		for i, c := range []byte(key) { // with bytes between that are not UTF-8
			image[at+2*i], image[at+2*i+1] = c, 0x80+byte(random.UintN(64))
		}
		if at > 0 {
			image[at-1] = ' ' // not a part of an escape sequence or of a character
		}
		if bytes.Equal(r.Bytes(image), image) {
			t.Fatalf("the secret at %d was not found", at)
		}
	}
}
