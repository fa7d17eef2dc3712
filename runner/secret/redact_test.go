package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

const key = "sk-Ab3?d/E+f=ghIJ&<1>"

func TestRedactForms(t *testing.T) {
	r := NewRedactor(NewValue(key), NewValue("short"), NewValue("line one of a private key\nand line two of that very key\n"))
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	cases := map[string]struct{ in, want string }{
		"plain":         {"a " + key + " b", "a *** b"},
		"twice":         {key + key + "," + key, "***,***"},
		"only":          {key, "***"},
		"json":          {`{"k":` + quote(key) + `}`, `{"k":"***"}`},
		"query":         {"?k=" + url.QueryEscape(key) + "&x", "?k=***&x"},
		"path":          {"/" + url.PathEscape(key) + "/", "/***/"},
		"lower escapes": {strings.ToLower("?") + lowerEscapes(url.QueryEscape(key)), "?***"},
		"hex":           {hex.EncodeToString([]byte("a" + key + "b")), "61***62"},
		"HEX":           {strings.ToUpper(hex.EncodeToString([]byte(key))), "***"},
		"too short":     {"a short text", "a short text"},
		"part":          {key[:len(key)-1] + "x", key[:len(key)-1] + "x"},
		"line":          {"  and line two of that very key\r\n", "  ***\r\n"},
		"clean":         {strings.Repeat("nothing to see. ", 100), strings.Repeat("nothing to see. ", 100)},
		"empty":         {"", ""},
	}
	for name, c := range cases {
		if got := r.String(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRedactBase64AtEveryPosition(t *testing.T) {
	r := NewRedactor(NewValue(key))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for before := range 7 {
			for after := range 4 {
				text := strings.Repeat("x", before) + key + strings.Repeat("y", after)
				got := r.String(enc.EncodeToString([]byte(text)))
				// The rest may reveal a few bits of the first and last byte.
				if !strings.Contains(got, mask) || len(got) > len(mask)+(before+after+2)*4/3+6 {
					t.Errorf("%d before, %d after: %s", before, after, got)
				}
			}
		}
	}
}

func TestRedactOverlapsAsOne(t *testing.T) {
	r := NewRedactor(NewValue("abcdefgh"), NewValue("efghijkl"), NewValue("abcdefghij"))
	for in, want := range map[string]string{
		"-abcdefghijkl-": "-***-", "-abcdefgh-": "-***-", "-abcdefghij-": "-***-", "abcdefghabcdefgh": "***", "xabcdefgx": "xabcdefgx",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestRedactorWithoutSecrets(t *testing.T) {
	r := NewRedactor(NewValue("short"), Value{})
	s := r.NewStream()
	if r != nil || r.String("short") != "short" || string(r.Bytes([]byte("x"))) != "x" || s.Push("short")+s.Flush() != "short" {
		t.Error("a redactor without secrets must leave everything as it is")
	}
}

func TestBytesLeavesItsInput(t *testing.T) {
	r := NewRedactor(NewValue(key))
	in := []byte("x" + key + "y")
	keep := bytes.Clone(in)
	if got := r.Bytes(in); string(got) != "x***y" || !bytes.Equal(in, keep) {
		t.Errorf("got %q, input now %q", got, in)
	}
	clean := []byte("clean text")
	if got := r.Bytes(clean); &got[0] != &clean[0] {
		t.Error("clean text is copied")
	}
}

func TestStreamHoldsBackOnlyWhatMayBeASecret(t *testing.T) {
	s := NewRedactor(NewValue("abcdefgh")).NewStream()
	steps := []struct{ in, want string }{{"hello ", "hello "}, {"xab", "x"}, {"cde", ""}, {"fgh", "***"}, {" abc", " "}, {"x", "abcx"}, {"abcd", ""}}
	for _, c := range steps {
		if got := s.Push(c.in); got != c.want {
			t.Errorf("Push(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := s.Flush(); got != "abcd" {
		t.Errorf("Flush = %q", got)
	}
}

// reference hides the union of all places where a form is, found by comparing at
// every position of every reading.
func reference(r *Redactor, in string) string {
	b := []byte(in)
	hidden := make([]bool, len(b))
	cover := func(start, end int) {
		for i := start; i < end; i++ {
			hidden[i] = true
		}
	}
	for _, how := range []reading{{}, {bare: true}} {
		var p places
		s := skimmer{b: b, reading: how}
		text := s.next(make([]byte, 0, len(b)+8), &p)
		for i := range text {
			for _, w := range r.skimmed.words {
				if bytes.HasPrefix(text[i:], w) {
					cover(p.start[i], p.end[i+len(w)-1])
				}
			}
		}
	}
	for i := range b {
		if r.exact == nil {
			break
		}
		for _, w := range r.exact.words {
			if bytes.HasPrefix(b[i:], w) {
				cover(i, i+len(w))
			}
		}
	}
	var out strings.Builder
	for i := range b {
		switch {
		case !hidden[i]:
			out.WriteByte(b[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString(mask)
		}
	}
	return out.String()
}

func FuzzRedact(f *testing.F) {
	f.Add("abcdef", "cdefgh", "abcdefgh abcde", uint8(3))
	f.Add("aaaaaa", "aaaaaaaa", "aaaaaaaaaaaaaaaaaaaaa", uint8(1))
	f.Add(key, "x\ny'z\"<>", "k="+url.QueryEscape(key)+base64.StdEncoding.EncodeToString([]byte("1"+key)), uint8(7))
	f.Add("\xff\xfe\x00\x01\x02\x03", "short", "\xff\xfe\x00\x01\x02\x03\xff", uint8(2))
	f.Add("abcdefgh", "a b c d e", "abc\x1b[31mdefgh a b c d e \x1b]0;ab\x07cdefgh a\u200bbcdefgh", uint8(4))
	f.Fuzz(func(t *testing.T, a, b, text string, size uint8) {
		r := NewRedactor(NewValue(a), NewValue(b))
		if r == nil || r.skimmed == nil {
			return
		}
		text = strings.ReplaceAll(text, "…", "") // a cut is another matter
		for _, in := range []string{text, text + a + text + b, a + b, a[:len(a)/2] + b + a, a[:len(a)/2] + text + a[len(a)/2:]} {
			want := reference(r, in)
			if got := string(hide([]byte(in), r.secrets([]byte(in), false, false, false))); got != want {
				t.Fatalf("%q gave %q, want %q", in, got, want)
			}
			if (want != in) != r.suspect([]byte(in), false) {
				t.Fatalf("%q: suspect is %v, want %v", in, want == in, want != in)
			}
			s, n := r.NewStream(), int(size%17)+1
			var got strings.Builder
			for rest := in; rest != ""; {
				k := min(n, len(rest))
				got.WriteString(s.Push(rest[:k]))
				rest = rest[k:]
			}
			got.WriteString(s.Flush())
			if got.String() != want {
				t.Fatalf("in pieces of %d: %q, want %q", n, got.String(), want)
			}
		}
	})
}

func BenchmarkRedactClean50KB(b *testing.B) {
	r := NewRedactor(NewValue("sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCD"), NewValue("ghp_0123456789abcdefghijklmnopqrstuvwxyz"))
	line := "drwxr-xr-x 2 root root 4096 Nov 21 01:09 runner/model/openai/answer.go: func (a *answer) chunk(data []byte) error {\n"
	text := []byte(strings.Repeat(line, 51200/len(line)))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(r.Bytes(text)) != len(text) {
			b.Fatal("redacted clean text")
		}
	}
}

func BenchmarkRedactClean200KB(b *testing.B) {
	r := NewRedactor(NewValue("sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCD"), NewValue("ghp_0123456789abcdefghijklmnopqrstuvwxyz"))
	line := "drwxr-xr-x 2 root root 4096 Nov 21 01:09 runner/model/openai/answer.go: func (a *answer) chunk(data []byte) error {\n"
	text := strings.Repeat(line, 204800/len(line))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(r.String(text)) != len(text) {
			b.Fatal("redacted clean text")
		}
	}
}

func BenchmarkRedactStream(b *testing.B) {
	r := NewRedactor(NewValue("sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCD"))
	piece := strings.Repeat("some text of the model, ", 4)
	s := r.NewStream()
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		s.Push(piece)
	}
}

// A long text is looked through in pieces.
func TestASecretBetweenTwoPiecesOfALongTextIsFound(t *testing.T) {
	r := NewRedactor(NewValue("sk-0123456789abcdef"), NewValue(strings.Repeat("long secret ", 20)))
	for _, secret := range []string{"sk-0123456789abcdef", strings.Repeat("long secret ", 20)} {
		for at := 64<<10 - len(secret) - 2; at < 64<<10+2; at++ {
			text := strings.Repeat(".", at) + secret + strings.Repeat(".", 100<<10)
			got := r.String(text)
			if strings.Contains(got, secret) || got != string(r.Bytes([]byte(text))) {
				t.Fatalf("the secret at %d was not found", at)
			}
		}
	}
	clean := strings.Repeat("no secret here ", 20<<10)
	if r.String(clean) != clean {
		t.Error("a text without a secret was changed")
	}
	if allocated := testing.AllocsPerRun(5, func() { r.String(clean) }); allocated > 2 {
		t.Errorf("%v allocations for a clean text", allocated)
	}
}

// BenchmarkRedactImage looks for secrets in what the results of tools attach.
func BenchmarkRedactImage(b *testing.B) {
	r := NewRedactor(NewValue("sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCD"), NewValue("ghp_0123456789abcdefghijklmnopqrstuvwxyz"))
	image := make([]byte, 9_600_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range image {
		image[i] = byte(random.UintN(256))
	}
	b.SetBytes(int64(len(image)))
	for b.Loop() {
		if len(r.Bytes(image)) != len(image) {
			b.Fatal("redacted an image without a secret")
		}
	}
}
