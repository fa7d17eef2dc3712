package audit

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// longRun is a run with a journal of about so many bytes: answers in pieces, and calls with
// outputs of up to 40 KB.
func longRun(b *testing.B, size int64) *kept {
	b.Helper()
	k := begin(b, b.TempDir(), "worker-1", nil)
	text := strings.Repeat("func main() {\n\tfmt.Println(\"hello, world\") // as it is\n}\n", 700)
	for n := 0; ; n++ {
		out := text[:len(text)>>(n%5)]
		k.turn(allow, out[:min(len(out), 900)])
		if n%2 == 0 {
			k.turn(allow, out)
		}
		names, err := filepath.Glob(k.path("events-*.jsonl"))
		if err != nil {
			b.Fatal(err)
		}
		if info, err := os.Stat(names[0]); err != nil || info.Size() >= size {
			break
		}
	}
	k.end()
	return k
}

// floorOf is the time of hashing the files of a run.
func floorOf(b *testing.B, k *kept) (time.Duration, int64) {
	b.Helper()
	var bytes int64
	start := time.Now()
	room := make([]byte, 1<<20)
	for _, name := range k.everyFile() {
		f, err := os.Open(k.path(name))
		if err != nil {
			b.Fatal(err)
		}
		h := sha256.New()
		n, err := io.CopyBuffer(h, struct{ io.Reader }{f}, room)
		if err != nil {
			b.Fatal(err)
		}
		bytes += n
		_ = h.Sum(nil)
		_ = f.Close()
	}
	return time.Since(start), bytes
}

// BenchmarkVerify compares the verification of a run whose journal has 100 MB with the SHA-256
// of the same files.
func BenchmarkVerify(b *testing.B) {
	k := longRun(b, 100<<20)
	var own, floor time.Duration
	var size, journal int64
	for b.Loop() {
		took, n := floorOf(b, k)
		floor, size = floor+took, n
		start := time.Now()
		v := k.verify()
		own += time.Since(start)
		if !v.OK {
			b.Fatal(v.Problems)
		}
		journal = v.Journal.Bytes
	}
	mb := func(n int64, d time.Duration) float64 { return float64(n) * float64(b.N) / (1 << 20) / d.Seconds() }
	b.ReportMetric(float64(journal)/(1<<20), "MB-journal")
	b.ReportMetric(mb(size, own), "MB/s-verify")
	b.ReportMetric(mb(size, floor), "MB/s-sha256")
	b.ReportMetric(own.Seconds()/floor.Seconds(), "times-floor")
}

// BenchmarkReceipt compares the receipt of a run of 20 turns with a signature of the same
// bytes.
func BenchmarkReceipt(b *testing.B) {
	_, _, key := keys(b)
	k := begin(b, b.TempDir(), "worker-1", nil)
	for n := range 20 {
		k.turn(allow, strings.Repeat("a line of an output\n", 50*(1+n%10)))
	}
	k.end()
	text, err := Sign(b.Context(), k.dir, key)
	if err != nil {
		b.Fatal(err)
	}
	payload, err := open(text, key.Public())
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "receipt.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	var own, check, floor time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := Sign(b.Context(), k.dir, key); err != nil {
			b.Fatal(err)
		}
		own += time.Since(start)
		start = time.Now()
		if sig, err := key.Sign(b.Context(), payload); err != nil || len(bytes.TrimSpace(sig)) == 0 {
			b.Fatal(err)
		}
		floor += time.Since(start)
		start = time.Now()
		v, err := CheckReceipt(b.Context(), ReceiptOptions{File: file, Key: key.Public(), State: k.state})
		if err != nil || !v.OK || !v.Receipt.Journal {
			b.Fatal(v, err)
		}
		check += time.Since(start)
	}
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(per(own), "ms-receipt")
	b.ReportMetric(per(check), "ms-check")
	b.ReportMetric(per(floor), "ms-sign")
}
