package embedded

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRestart is the time from the start of a process to a server that is
// ready, with 500 objects in its folder.
func BenchmarkRestart(b *testing.B) {
	state := stateDir(b)
	p := start(b, state)
	c := client(b, p)
	for i := range 500 {
		if _, err := c.Apply(b.Context(), fmt.Sprintf("r%d", i), runNamed(fmt.Sprintf("r%d", i)), applyAs); err != nil {
			b.Fatal(err)
		}
	}
	p.stop(b)
	took := time.Duration(0)
	b.ResetTimer()
	for range b.N {
		p := start(b, state)
		took += p.took
		b.StopTimer()
		p.stop(b)
		b.StartTimer()
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/ready")
}

// BenchmarkFirstStart is the time to the first object on an empty folder.
func BenchmarkFirstStart(b *testing.B) {
	ready, object, rss := time.Duration(0), time.Duration(0), int64(0)
	for range b.N {
		p := start(b, stateDir(b))
		ready += p.took
		begin := time.Now()
		if _, err := client(b, p).Apply(b.Context(), "r", runNamed("r"), applyAs); err != nil {
			b.Fatal(err)
		}
		object += p.took + time.Since(begin)
		rss += resident(b, p)
		p.kill(b)
	}
	b.ReportMetric(float64(ready.Milliseconds())/float64(b.N), "ms/ready")
	b.ReportMetric(float64(object.Milliseconds())/float64(b.N), "ms/object")
	b.ReportMetric(float64(rss)/float64(b.N)/1024, "MB/process")
}

// resident is the memory of a process in KB.
func resident(b *testing.B, p *process) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Skip("needs /proc: ", err)
	}
	var n int64
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkCreate is one client that makes one object after the other, each on
// disk before it is answered.
func BenchmarkCreate(b *testing.B) {
	p := start(b, stateDir(b))
	c := client(b, p)
	// The kinds are new: the first create of a kind waits two seconds for servers
	// beside this one.
	if _, err := c.Create(b.Context(), runNamed("first"), metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	name := 0
	b.ResetTimer()
	for range b.N {
		name++
		if _, err := c.Create(b.Context(), runNamed(fmt.Sprintf("r%d", name)), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	p.stop(b)
}
